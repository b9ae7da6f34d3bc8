import { existsSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { systemClock } from '../../lib/clock.ts';
import type { RequestedPrecision } from '../compile/choose-precision.ts';
import { kernelFamily, machineThreads } from '../compile/kernels.ts';
import type { DeviceChoice } from '../device/device-table.ts';
import { resolveDevices } from '../device/resolve-devices.ts';
import { openHub } from '../hub/hub-client.ts';
import { TRANSFER_SETTINGS } from '../hub/pull-context.ts';
import { Calibrations } from '../store/calibrations.ts';
import type { Dtype } from '../store/dtypes.ts';
import { type HubEnvironment, hubEnvironment } from '../store/environment.ts';
import { StorePaths } from '../store/paths.ts';
import type { Compiles } from '../supervisor/children/compiles.ts';
import type { LongInput } from './hosted-model.ts';
import type { MemorySettings } from './memory-budget.ts';
import { type HostOptions, LocalModelHost } from './model-host.ts';
import { PrefixFolders, type PrefixSettings } from './prefix-folders.ts';

export interface HostSettings {
  createEngine: HostOptions['createEngine'];
  compiler: Pick<Compiles, 'compile' | 'describe'>;
  log: Logger;
  /** Directory of compiled models and other data (`ASSAY_HOME`). */
  home: string;
  /** Device to run models on. Default: `auto`, the best one that works. */
  device?: DeviceChoice;
  /** Number format of the weights to download. Default: the best for the device. */
  dtype?: Dtype | undefined;
  /** Precision of compiled models. Default: `auto`, the best for the device. */
  precision?: RequestedPrecision;
  /** Says what to do with texts that an encoder model cannot read whole. Default: `refuse`. */
  longInput?: LongInput;
  /** Memory for models that are loaded beside each other. Default: a load replaces the loaded model. */
  memory?: MemorySettings | undefined;
  /** True to load a model of this machine when the first request for it arrives. */
  loadOnDemand?: boolean;
  /** Folder in which prefixes outlive the process of their model, and its size. Default: they end with it. */
  prefixes?: PrefixSettings | undefined;
  /** Settings from the `HF_*` variables. Default: those of this process's environment. */
  hub?: HubEnvironment;
}

/**
 * Creates this machine's model host, with the real network, disk, clock and environment. Throws `invalid_value` if
 * `hub` is absent and its paths need a home folder, which the account does not have.
 */
export async function createModelHost(settings: HostSettings): Promise<LocalModelHost> {
  const {
    createEngine,
    compiler,
    log,
    home,
    device = 'auto',
    dtype,
    precision = 'auto',
    hub = hubEnvironment(),
  } = settings;
  const { longInput = 'refuse', memory, loadOnDemand = false } = settings;
  const resolver = await resolveDevices(device, home);
  const paths = new StorePaths({ hubCache: hub.hubCache, assayHome: home, bundled: bundledModels() });
  return new LocalModelHost({
    createEngine,
    loadOnDemand,
    ...(memory ? { memory } : {}),
    calibrations: new Calibrations(paths),
    pull: {
      hub: await openHub(hub),
      paths,
      fs,
      settings: TRANSFER_SETTINGS,
      describe: (file) => compiler.describe(file),
    },
    compile: {
      paths,
      compiler,
      clock: systemClock,
      log,
      devices: resolver.devices,
      drives: (one) => resolver.has(one),
      plugin: (one) => resolver.plugin(one),
      automatic: device === 'auto',
      precision,
      kernels: kernelFamily(),
      threads: machineThreads(),
      runtimeVersion: createRequire(import.meta.url)('onnxruntime-node/package.json').version,
      freeBytes: async (directory) => {
        const { bavail, bsize } = await fs.statfs(directory);
        return bavail * bsize;
      },
    },
    longInput,
    ...(settings.prefixes ? { prefixes: await PrefixFolders.open(settings.prefixes, home) } : {}),
    ...(dtype ? { dtype } : {}),
  });
}

/**
 * Returns the path of this package's folder `models/`: beside `runtime/` in the repository, one level further up from
 * `dist/` in the published package. Returns null if there is none.
 */
function bundledModels(): string | null {
  const folders = ['../../models', '../../../models'].map((path) => fileURLToPath(new URL(path, import.meta.url)));
  return folders.find((folder) => existsSync(folder)) ?? null;
}
