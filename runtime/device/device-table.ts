import type { Device } from '../../lib/backend.ts';
import { PLATFORM, type PluginName } from '../plugins/catalogue.ts';
import type { Accelerator } from './hardware.ts';

/** Describes one way to run a model: an execution provider of onnxruntime, with the hardware that it uses. */
export interface DeviceRow {
  device: Device;
  /** Name of the execution provider, as onnxruntime-node or the plugin defines it. */
  provider: string;
  /** Plugin that contains the provider; absent for providers inside onnxruntime-node. */
  plugin?: PluginName;
  /** Vendor of the supported hardware; absent if the provider supports all vendors. */
  vendor?: Accelerator['vendor'];
  /** Name of the device that users see. */
  name: string;
  /** Platforms on which the provider exists, as `process.platform`-`process.arch`. */
  platforms: readonly string[];
  /**
   * True if `--device auto` may choose the device. It may choose the CPU, and most plugins, because each model is
   * measured on their device and on the CPU and must run on the device as a whole (`registry/judge-device.ts`). A
   * provider of onnxruntime-node may run only part of a graph, copy keys and values at each step, and be slower than
   * the CPU.
   */
  automatic: boolean;
  /** Command that installs the missing files of the provider; absent if there is none. */
  install?: string;
}

/**
 * Lists everything that onnxruntime can run models on, best first. Source: the README of onnxruntime-node
 * ("Requirements", 1.30) and `plugins/catalogue.ts`.
 */
export const DEVICE_TABLE: readonly DeviceRow[] = [
  {
    device: 'NPU',
    provider: 'coreml',
    name: 'Apple Neural Engine (CoreML)',
    platforms: ['darwin-arm64'],
    automatic: false,
  },
  {
    device: 'NPU',
    provider: 'OpenVINOExecutionProvider',
    plugin: 'openvino',
    vendor: 'Intel',
    name: 'Intel NPU (OpenVINO)',
    platforms: ['linux-x64', 'win32-x64'],
    automatic: true,
    install: 'assay ep install openvino',
  },
  {
    device: 'NPU',
    provider: 'QNNExecutionProvider',
    plugin: 'qnn',
    vendor: 'Qualcomm',
    name: 'Qualcomm Hexagon NPU (QNN)',
    platforms: ['win32-arm64', 'linux-arm64'],
    automatic: true,
    install: 'assay ep install qnn',
  },
  {
    device: 'GPU',
    provider: 'CUDAExecutionProvider',
    plugin: 'cuda',
    vendor: 'NVIDIA',
    name: 'NVIDIA GPU (CUDA)',
    platforms: ['linux-x64', 'linux-arm64'],
    automatic: true,
    install: 'assay ep install cuda',
  },
  {
    device: 'GPU',
    provider: 'OpenVINOExecutionProvider',
    plugin: 'openvino',
    vendor: 'Intel',
    name: 'Intel GPU (OpenVINO)',
    platforms: ['linux-x64', 'win32-x64'],
    automatic: true,
    install: 'assay ep install openvino',
  },
  { device: 'GPU', provider: 'dml', name: 'GPU (DirectML)', platforms: ['win32-x64', 'win32-arm64'], automatic: false },
  {
    device: 'GPU',
    provider: 'webgpu',
    name: 'GPU (WebGPU)',
    platforms: ['linux-x64', 'darwin-arm64', 'win32-x64', 'win32-arm64'],
    automatic: false,
  },
  {
    device: 'GPU',
    provider: 'WebGpuExecutionProvider',
    plugin: 'webgpu',
    name: 'GPU (WebGPU plugin)',
    platforms: ['linux-x64', 'linux-arm64', 'darwin-arm64', 'win32-x64', 'win32-arm64'],
    // Not verified on real hardware.
    automatic: false,
    install: 'assay ep install webgpu',
  },
  {
    device: 'CPU',
    provider: 'cpu',
    name: 'CPU',
    platforms: ['linux-x64', 'linux-arm64', 'darwin-arm64', 'win32-x64', 'win32-arm64'],
    automatic: true,
  },
];

/** Returns the rows of `DEVICE_TABLE` for a platform (`process.platform`-`process.arch`), best first. */
export function rowsFor(platform: string): readonly DeviceRow[] {
  return DEVICE_TABLE.filter((row) => row.platforms.includes(platform));
}

/**
 * Returns the names of onnxruntime-node's own providers for a kind of device on this machine, best first. The engine
 * tries them in this order.
 */
export function providersOf(device: Device, platform = PLATFORM): readonly string[] {
  return rowsFor(platform)
    .filter((row) => row.device === device && !row.plugin)
    .map((row) => row.provider);
}

/** Accepted values of `ASSAY_DEVICE` and `--device`. */
export const DEVICE_CHOICES = ['auto', 'npu', 'gpu', 'cpu'] as const;
export type DeviceChoice = (typeof DEVICE_CHOICES)[number];

/**
 * Returns the kinds of devices to try, best first: with `auto`, those of the `usable` rows that may be chosen
 * automatically; otherwise the user's choice, whether usable or not. The CPU is always the last, so that every machine
 * can answer.
 */
export function devicesToTry(choice: DeviceChoice, usable: readonly DeviceRow[]): readonly Device[] {
  const wanted =
    choice === 'auto' ? usable.filter((row) => row.automatic).map((row) => row.device) : [asDevice(choice)];
  return [...new Set<Device>([...wanted, 'CPU'])];
}

/** Tells whether a row's provider supports an accelerator. */
export function drives(row: DeviceRow, found: Accelerator): boolean {
  return found.kind === row.device && (row.vendor === undefined || row.vendor === found.vendor);
}

function asDevice(choice: Exclude<DeviceChoice, 'auto'>): Device {
  const devices = { npu: 'NPU', gpu: 'GPU', cpu: 'CPU' } as const;
  return devices[choice];
}
