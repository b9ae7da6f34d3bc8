import type { Device } from '../../lib/backend.ts';

/** One way to run a model: an execution provider of onnxruntime and what it drives. */
export interface DeviceRow {
  device: Device;
  /** Name of the execution provider in onnxruntime-node. */
  provider: string;
  /** What a person calls it. */
  name: string;
  /** `process.platform`-`process.arch` on which the provider exists at all. */
  platforms: readonly string[];
  /**
   * Whether it is used without being asked for. Only what was measured is: a provider that takes a graph only in part, and copies
   * keys and values at each step, is slower than the CPU and still looks like success.
   */
  automatic: boolean;
  /** The command that brings the provider's missing files. */
  install?: string;
}

const CUDA_FILES = 'node node_modules/onnxruntime-node/script/install.js --onnxruntime-node-install=cuda12';

/** Everything that onnxruntime-node can run on, the best first. Source: its README ("Requirements", 1.30). */
export const DEVICE_TABLE: readonly DeviceRow[] = [
  {
    device: 'NPU',
    provider: 'coreml',
    name: 'Apple Neural Engine (CoreML)',
    platforms: ['darwin-arm64'],
    automatic: false,
  },
  { device: 'NPU', provider: 'qnn', name: 'Qualcomm Hexagon (QNN)', platforms: ['win32-arm64'], automatic: false },
  {
    device: 'GPU',
    provider: 'cuda',
    name: 'NVIDIA GPU (CUDA)',
    platforms: ['linux-x64'],
    automatic: false,
    install: CUDA_FILES,
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
    device: 'CPU',
    provider: 'cpu',
    name: 'CPU',
    platforms: ['linux-x64', 'linux-arm64', 'darwin-arm64', 'win32-x64', 'win32-arm64'],
    automatic: true,
  },
];

/** The rows of a machine, the best first. */
export function rowsFor(platform: string): readonly DeviceRow[] {
  return DEVICE_TABLE.filter((row) => row.platforms.includes(platform));
}

/** Execution providers for a device on this machine, the best first; the engine tries one after the other. */
export function providersOf(device: Device, platform = `${process.platform}-${process.arch}`): readonly string[] {
  return rowsFor(platform)
    .filter((row) => row.device === device)
    .map((row) => row.provider);
}

/** What `ASSAY_DEVICE` and `--device` take. */
export const DEVICE_CHOICES = ['auto', 'npu', 'gpu', 'cpu'] as const;
export type DeviceChoice = (typeof DEVICE_CHOICES)[number];

/** Devices to try, in order; a CPU is always the last, so a wish never leaves a machine without answers. */
export function devicesToTry(
  choice: DeviceChoice,
  platform = `${process.platform}-${process.arch}`,
): readonly Device[] {
  const rows = rowsFor(platform);
  const wanted = choice === 'auto' ? rows.filter((row) => row.automatic).map((row) => row.device) : [asDevice(choice)];
  return [...new Set<Device>([...wanted, 'CPU'])];
}

function asDevice(choice: Exclude<DeviceChoice, 'auto'>): Device {
  return { npu: 'NPU', gpu: 'GPU', cpu: 'CPU' }[choice] as Device;
}
