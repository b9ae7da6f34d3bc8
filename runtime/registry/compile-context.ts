import type { Logger } from 'pino';
import type { Device } from '../../lib/backend.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Precision } from '../../lib/schema/precision.ts';
import type { RequestedPrecision } from '../compile/choose-precision.ts';
import type { DevicePlugin } from '../device/resolve-devices.ts';
import type { StorePaths } from '../store/paths.ts';
import type { Compiles } from '../supervisor/children/compiles.ts';

/** Holds the services and settings that compiling depends on. */
export interface CompileContext {
  paths: StorePaths;
  compiler: Pick<Compiles, 'compile'>;
  clock: Clock;
  log: Logger;
  /** Devices to compile for, best first. The CPU is always the last. */
  devices: readonly Device[];
  /**
   * Tells whether this machine has an execution provider or a plugin for a device. The device may still fail to run a
   * model.
   */
  drives(device: Device): boolean;
  /**
   * Returns the plugin for a device; null if onnxruntime-node supports the device itself. Throws `engine_failed` if
   * nothing on this machine supports it.
   */
  plugin(device: Device): Promise<DevicePlugin | null>;
  /** True if the user named no device (`--device auto`); a device that is slower than the CPU is then not used. */
  automatic: boolean;
  /** Precision to compile; `auto` chooses the best for each device. */
  precision: RequestedPrecision;
  /** Kernel family of this machine's CPU (`kernelFamily`). */
  kernels: string;
  /** Version of onnxruntime-node, which is part of the fingerprint of compiled models. */
  runtimeVersion: string;
  /** Returns the number of free bytes on the disk that contains a directory. */
  freeBytes(directory: string): Promise<number>;
}

export interface EnsureOptions {
  maxPromptLen?: number;
  signal: AbortSignal;
  onProgress(progress: StageProgress): void;
  /** Devices not to compile for, because they failed to load a model since the server started. */
  without?: ReadonlySet<Device>;
  /** Precisions not to use, because this model computed wrong logits in them when it was loaded. */
  refused?: ReadonlySet<Precision>;
  /** Tells whether a compiled model's directory must not be deleted, because the model is loaded or being loaded. */
  inUse(directory: string): boolean;
}

export interface StageProgress {
  stage: 'verifying' | 'compiling';
  bytes: number;
  total: number | null;
  file?: string;
  step?: string;
}
