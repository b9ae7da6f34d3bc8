import type { Device } from '../../lib/backend.ts';
import { type DeviceChoice, type DeviceRow, devicesToTry, rowsFor } from './device-table.ts';
import type { Accelerator } from './hardware.ts';
import type { ProbeResult } from './probe.ts';

/**
 * `in use`: what a model is loaded on. `works`: could be used, and is not asked for. `blocked`: the hardware may be there, and
 * something is missing. `absent`: this machine does not have it. `unsupported`: it is there, and onnxruntime-node has no provider.
 */
export const DEVICE_STATES = ['in use', 'works', 'blocked', 'absent', 'unsupported'] as const;
export type DeviceState = (typeof DEVICE_STATES)[number];

export interface DeviceFinding {
  device: Device;
  name: string;
  state: DeviceState;
  why: string;
  /** What would change that; null where nothing does. */
  command: string | null;
}

/** What the doctor looks at, passed in so that tests can be any machine. */
export interface DoctorEffects {
  /** `process.platform`-`process.arch`. */
  platform: string;
  choice: DeviceChoice;
  accelerators: readonly Accelerator[] | null;
  probe(provider: string): Promise<ProbeResult>;
}

/** Every device of this machine: what state it is in, why, and what would change that. */
export async function examineDevices(effects: DoctorEffects): Promise<DeviceFinding[]> {
  const { platform, choice } = effects;
  const findings: DeviceFinding[] = [];
  for (const row of rowsFor(platform)) findings.push(await examine(row, effects));
  // The first device asked for of which a provider works is the one that runs.
  for (const device of devicesToTry(choice, platform)) {
    const used = findings.find((finding) => finding.device === device && finding.state === 'works');
    if (!used) continue;
    used.state = 'in use';
    used.why = choice === 'auto' ? 'the best device that Assay chooses by itself here' : `ASSAY_DEVICE is ${choice}`;
    used.command = null;
    break;
  }
  return [...findings, ...(effects.accelerators ?? []).flatMap(unsupported)];
}

async function examine(row: DeviceRow, { accelerators, probe }: DoctorEffects): Promise<DeviceFinding> {
  const { device, name } = row;
  const hardware = accelerators === null ? [] : accelerators.filter((found) => fits(row, found));
  if (accelerators !== null && device !== 'CPU' && hardware.length === 0) {
    const kind = row.provider === 'cuda' ? 'NVIDIA GPU' : device;
    return { device, name, state: 'absent', why: `this machine has no ${kind}`, command: null };
  }
  const result = await probe(row.provider);
  if (result.works) {
    const why =
      'it computes; Assay uses it only when asked, because it has not been measured to be faster than the CPU';
    return { device, name, state: 'works', why, command: `ASSAY_DEVICE=${device.toLowerCase()} assay serve` };
  }
  const driverless = hardware.find((found) => found.driver === null);
  if (driverless) {
    const why = `the system has no driver for the ${driverless.vendor} ${driverless.kind}`;
    return { device, name, state: 'blocked', why, command: driverCommand(driverless) };
  }
  const missing = /shared library|backend not found/i.test(result.reason);
  const why = missing ? 'onnxruntime-node was installed without the files for it' : result.reason;
  return { device, name, state: 'blocked', why, command: missing ? (row.install ?? null) : advice(row) };
}

function fits(row: DeviceRow, found: Accelerator): boolean {
  return found.kind === row.device && (row.provider !== 'cuda' || found.vendor === 'NVIDIA');
}

function driverCommand({ vendor, kind }: Accelerator): string {
  if (vendor === 'NVIDIA') return 'sudo ubuntu-drivers install    # or the driver from https://www.nvidia.com/drivers';
  if (kind === 'NPU') return `install the ${vendor} NPU driver, then start the machine again`;
  return 'sudo apt install mesa-vulkan-drivers';
}

function advice(row: DeviceRow): string | null {
  return row.provider === 'webgpu' && row.platforms.includes('linux-x64')
    ? 'sudo apt install mesa-vulkan-drivers libvulkan1'
    : null;
}

/** NPUs that are there and that no provider of onnxruntime-node drives. */
function unsupported({ kind, vendor }: Accelerator): DeviceFinding[] {
  if (kind !== 'NPU') return [];
  return [
    {
      device: 'NPU',
      name: `${vendor} NPU`,
      state: 'unsupported',
      why: `onnxruntime-node has no provider for it; ${vendor}'s own server can drive it, with Assay in front (README, "Devices")`,
      command: null,
    },
  ];
}
