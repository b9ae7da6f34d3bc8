import type { Device } from '../../lib/backend.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import type { InstalledPlugin } from '../plugins/plugin-store.ts';
import { type DeviceChoice, type DeviceRow, devicesToTry, drives, rowsFor } from './device-table.ts';
import type { Accelerator } from './hardware.ts';
import type { ProbeResult } from './probe.ts';
import { targetOf } from './resolve-devices.ts';

/**
 * States of a device. `in use`: models run on it. `works`: it could be used, but is not chosen. `blocked`: the hardware
 * may exist, but something is missing. `absent`: this machine does not have it. `unsupported`: the hardware exists, but
 * no provider supports it.
 */
export const DEVICE_STATES = ['in use', 'works', 'blocked', 'absent', 'unsupported'] as const;
export type DeviceState = (typeof DEVICE_STATES)[number];

export interface DeviceFinding {
  device: Device;
  name: string;
  state: DeviceState;
  why: string;
  /** Command that would change the state; null if there is none. */
  command: string | null;
}

/** Describes the machine for `assay doctor`, and how to try its devices. Tests replace it to simulate any machine. */
export interface DoctorEffects {
  /** Platform, as `process.platform`-`process.arch`. */
  platform: string;
  choice: DeviceChoice;
  /** GPUs and NPUs of the machine; null if they cannot be listed. */
  accelerators: readonly Accelerator[] | null;
  installed: readonly InstalledPlugin[];
  probe(provider: string): Promise<ProbeResult>;
  probePlugin(target: PluginTarget): Promise<ProbeResult>;
}

/**
 * Examines the devices in `DEVICE_TABLE` for this platform, and each NPU that none of them is for. Returns the state of
 * each, the reason, and the command that would change the state.
 */
export async function examineDevices(effects: DoctorEffects): Promise<DeviceFinding[]> {
  const { platform, choice } = effects;
  const examined: { row: DeviceRow; finding: DeviceFinding }[] = [];
  for (const row of rowsFor(platform)) examined.push({ row, finding: await examine(row, effects) });
  // The first device to be tried that has a working provider is the one in use.
  const usable = examined.filter(({ finding }) => finding.state === 'works').map(({ row }) => row);
  for (const device of devicesToTry(choice, usable)) {
    const used = examined.find(
      ({ row, finding }) => row.device === device && finding.state === 'works' && (choice !== 'auto' || row.automatic),
    );
    if (!used) continue;
    used.finding.state = 'in use';
    used.finding.why = whyUsed(used.row, choice);
    used.finding.command = null;
    break;
  }
  return [
    ...examined.map(({ finding }) => finding),
    ...(effects.accelerators ?? []).flatMap((one) => unsupported(one, platform)),
  ];
}

function whyUsed({ plugin }: DeviceRow, choice: DeviceChoice): string {
  if (choice !== 'auto') return `ASSAY_DEVICE is ${choice}`;
  return plugin
    ? 'it computes; each model is measured on it when it is compiled, and runs on the CPU where that is faster'
    : 'the best device that Assay chooses by itself here';
}

async function examine(row: DeviceRow, effects: DoctorEffects): Promise<DeviceFinding> {
  const { device, name } = row;
  const { accelerators } = effects;
  const finding = (state: DeviceState, why: string, command: string | null = null): DeviceFinding => ({
    device,
    name,
    state,
    why,
    command,
  });
  const hardware = (accelerators ?? []).filter((found) => drives(row, found));
  if (accelerators !== null && device !== 'CPU' && hardware.length === 0) {
    return finding('absent', `this machine has no ${row.vendor ? `${row.vendor} ` : ''}${device}`);
  }
  const driverless = hardware.find((found) => found.driver === null);
  const missing = row.plugin ? await examinePlugin(row, effects) : await examineBinding(row, effects);
  if (missing === null) {
    const why = row.automatic
      ? 'it computes'
      : 'it computes; Assay uses it only when asked, because it has not been measured to be faster than the CPU';
    return finding('works', why, `ASSAY_DEVICE=${device.toLowerCase()} assay serve`);
  }
  if (driverless) {
    const why = `the system has no driver for the ${driverless.vendor} ${driverless.kind}`;
    return finding('blocked', why, driverCommand(driverless));
  }
  return finding('blocked', missing.why, missing.command);
}

type Missing = Pick<DeviceFinding, 'why' | 'command'> | null;

/** Returns the reason why a provider inside onnxruntime-node cannot be used, or null if it can. */
async function examineBinding(row: DeviceRow, { probe }: DoctorEffects): Promise<Missing> {
  const result = await probe(row.provider);
  if (result.works) return null;
  return /shared library|backend not found/i.test(result.reason)
    ? { why: 'onnxruntime-node was installed without the files for it', command: row.install ?? null }
    : { why: result.reason, command: advice(row) };
}

/** Returns the reason why a device's plugin cannot be used, or null if it can. */
async function examinePlugin(
  row: DeviceRow,
  { installed, accelerators, probePlugin }: DoctorEffects,
): Promise<Missing> {
  const found = installed.find(({ plugin }) => plugin.name === row.plugin);
  const command = row.install ?? null;
  if (!found) {
    const condition = accelerators === null ? 'where this machine has one: ' : '';
    return { why: `${condition}its plugin is not installed`, command };
  }
  if (found.damage !== null) return { why: `its plugin is damaged: ${found.damage}`, command };
  const result = await probePlugin(targetOf(row, found));
  return result.works ? null : { why: result.reason, command: null };
}

function driverCommand({ vendor, kind }: Accelerator): string {
  if (vendor === 'NVIDIA') return 'sudo ubuntu-drivers install    # or the driver from https://www.nvidia.com/drivers';
  if (kind === 'NPU') return `install the ${vendor} NPU driver (docs/devices.md), then start the machine again`;
  return 'sudo apt install mesa-vulkan-drivers';
}

function advice(row: DeviceRow): string | null {
  return row.provider === 'webgpu' && row.platforms.includes('linux-x64')
    ? 'sudo apt install mesa-vulkan-drivers libvulkan1'
    : null;
}

/** Returns one finding for an NPU that no provider in the table supports, none for any other accelerator. */
function unsupported(found: Accelerator, platform: string): DeviceFinding[] {
  if (found.kind !== 'NPU' || rowsFor(platform).some((row) => drives(row, found))) return [];
  const { vendor } = found;
  return [
    {
      device: 'NPU',
      name: `${vendor} NPU`,
      state: 'unsupported',
      why: `no plugin that Assay installs drives it; ${vendor}'s own server can, with Assay in front (docs/devices.md)`,
      command: null,
    },
  ];
}
