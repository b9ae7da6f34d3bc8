import type { Logger } from 'pino';
import type { Device } from '../../lib/backend.ts';
import type { Clock } from '../../lib/clock.ts';
import type { WeightForm } from '../../lib/schema/weight-form.ts';
import type { Precision } from '../compile/precision.ts';
import type { DevicePlugin } from '../device/resolve-devices.ts';
import type { StorePaths } from '../store/paths.ts';
import type { EngineProcess } from '../supervisor/engine-process.ts';

/** Holds the effects and settings that compiling needs. */
export interface CompileContext {
  paths: StorePaths;
  engine: Pick<EngineProcess, 'compile'>;
  clock: Clock;
  log: Logger;
  /** Devices to compile for, best first; the CPU is always the last. */
  devices: readonly Device[];
  /** Tells whether an execution provider or a plugin on this machine may drive a device. */
  drives(device: Device): boolean;
  /**
   * Returns the plugin that drives a device; null for a device of onnxruntime-node. Throws `engine_failed` when nothing
   * drives it.
   */
  plugin(device: Device): Promise<DevicePlugin | null>;
  /** True when the caller named no device: then a device that is slower than the CPU is not used. */
  automatic: boolean;
  /** Form of the compiled weights; `auto`: the best for each device. */
  precision: Precision;
  /** Family of the CPU's kernels (`kernelFamily`). */
  kernels: string;
  /** Version of onnxruntime-node; part of the fingerprint. */
  runtimeVersion: string;
  /** Returns the free bytes on the disk of a directory. */
  freeBytes(directory: string): Promise<number>;
}

export interface EnsureOptions {
  maxPromptLen?: number;
  signal: AbortSignal;
  onProgress(progress: StageProgress): void;
  /** Devices to skip. */
  without?: ReadonlySet<Device>;
  /** Forms of the weights that gave wrong numbers at load. */
  refused?: ReadonlySet<WeightForm>;
  /** Tells whether a directory must stay, because it is loaded or being loaded. */
  inUse(directory: string): boolean;
}

export interface StageProgress {
  stage: 'verifying' | 'compiling';
  bytes: number;
  total: number | null;
  file?: string;
  step?: string;
}
