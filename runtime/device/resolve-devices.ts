import { dirname, join } from 'node:path';
import type { Device } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import { PLATFORM } from '../plugins/catalogue.ts';
import { type InstalledPlugin, PluginStore } from '../plugins/plugin-store.ts';
import { type DeviceChoice, type DeviceRow, devicesToTry, drives, rowsFor } from './device-table.ts';
import { type Accelerator, listAccelerators } from './hardware.ts';
import { listRuntimeHardware, type ProbeResult, probePlugin } from './probe.ts';

/** Describes a plugin's device that a probe found to work. */
export interface DevicePlugin {
  target: PluginTarget;
  /** Names the plugin, chip and driver, on which a compiled model depends. */
  identity: string;
}

export interface ResolveEffects {
  platform: string;
  accelerators: readonly Accelerator[] | null;
  installed: readonly InstalledPlugin[];
  probe(target: PluginTarget): Promise<ProbeResult>;
}

/**
 * Determines which devices a server tries, and which plugin supports each. Uses the hardware and plugins as listed when
 * the server started.
 */
export class DeviceResolver {
  /** Kinds of devices to try, best first. The CPU is always the last. */
  readonly devices: readonly Device[];
  readonly #rows: readonly DeviceRow[];
  /** True if only devices that are measured for each model may be used. */
  readonly #automatic: boolean;
  readonly #effects: ResolveEffects;
  readonly #probed = new Map<Device, Promise<DevicePlugin | null>>();

  constructor(choice: DeviceChoice, effects: ResolveEffects) {
    this.#effects = effects;
    this.#automatic = choice === 'auto';
    this.#rows = rowsFor(effects.platform).filter((row) => !row.plugin || this.#mayRun(row));
    this.devices = devicesToTry(choice, this.#rows);
  }

  /**
   * Tells whether a provider inside onnxruntime-node, or an intact plugin for hardware of this machine, exists for a
   * kind of device. The device may still fail to work.
   */
  has(device: Device): boolean {
    return this.#rows.some((row) => row.device === device);
  }

  /**
   * Probes the plugins for a kind of device, once, and returns the first that works; null if a provider inside
   * onnxruntime-node is to be used. Throws `engine_failed`, with the reasons, if neither exists.
   */
  plugin(device: Device): Promise<DevicePlugin | null> {
    const known = this.#probed.get(device);
    if (known) return known;
    const probing = this.#probe(device);
    this.#probed.set(device, probing);
    return probing;
  }

  async #probe(device: Device): Promise<DevicePlugin | null> {
    const reasons: string[] = [];
    const rows = this.#rows.filter((row) => row.device === device);
    for (const row of rows.filter(({ plugin }) => plugin)) {
      const installed = this.#effects.installed.find(({ plugin }) => plugin.name === row.plugin)!;
      const target = targetOf(row, installed);
      const result = await this.#effects.probe(target);
      if (result.works) return { target, identity: result.identity ?? target.plugin };
      reasons.push(`${row.name}: ${result.reason}`);
    }
    if (rows.some(({ plugin, automatic }) => !plugin && (automatic || !this.#automatic))) return null;
    const found = reasons.length > 0 ? ` (${reasons.join('; ')})` : '';
    throw new AssayError(
      'engine_failed',
      `Nothing on this machine drives its ${device}${found}. See what is missing: assay doctor`,
    );
  }

  #mayRun(row: DeviceRow): boolean {
    const { accelerators, installed } = this.#effects;
    const there = installed.some(({ plugin, damage }) => plugin.name === row.plugin && damage === null);
    return there && (accelerators === null || accelerators.some((found) => drives(row, found)));
  }
}

/** Creates the resolver for this machine, with the plugins installed in `home`. */
export async function resolveDevices(choice: DeviceChoice, home: string): Promise<DeviceResolver> {
  const installed = await new PluginStore(home).list();
  return new DeviceResolver(choice, {
    platform: PLATFORM,
    // Only Linux lists accelerators in files. Elsewhere onnxruntime lists them in a separate process, which is started
    // only if a plugin is installed.
    accelerators: (await listAccelerators()) ?? (installed.length > 0 ? await listRuntimeHardware() : null),
    installed,
    probe: probePlugin,
  });
}

/** Returns what a process needs to know to open a plugin's device. */
export function targetOf(row: DeviceRow, { plugin, library, libraryPath }: InstalledPlugin): PluginTarget {
  return {
    plugin: `${plugin.name} ${plugin.version}`,
    provider: row.provider,
    registration: plugin.registration,
    library,
    libraryPath: [...libraryPath],
    compiles: plugin.compiles,
    hardware: row.device,
    options: row.plugin === 'qnn' ? qnnOptions(dirname(library)) : {},
  };
}

/**
 * Returns the provider options of QNN, which cannot find its own NPU library. Source: onnxruntime, QNN Execution
 * Provider, "backend_path" and "htp_performance_mode".
 */
function qnnOptions(directory: string): Record<string, string> {
  const library = process.platform === 'win32' ? 'QnnHtp.dll' : 'libQnnHtp.so';
  return { backend_path: join(directory, library), htp_performance_mode: 'burst' };
}
