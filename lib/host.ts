import type { Device, ListedModel } from './backend.ts';
import type { ModelId } from './model-id.ts';
import type { DeviceFigures } from './schema/device-figures.ts';
import type { SlotState } from './schema/status.ts';
import type { WeightForm } from './schema/weight-form.ts';

export type { SlotState } from './schema/status.ts';

/**
 * Owns the models of a machine: their files and the one slot. Every method throws `AssayError` (docs/interface.md, M-6
 * to M-11).
 */
export interface ModelHost {
  slot(): Slot;
  listModels(): Promise<readonly ListedModel[]>;
  load(model: ModelId, options: { maxPromptLen?: number }): Promise<LoadReport>;
  unload(): Promise<UnloadReport>;
  /**
   * Fetches and compiles a model. Continues when the reader leaves (`leaving` aborts), unless it is still reading the
   * list of files; a second call for the same model joins the first. Ends with one `done` event.
   */
  download(
    model: ModelId,
    options: { maxPromptLen?: number; allowDownload: boolean },
    leaving?: AbortSignal,
  ): AsyncIterable<DownloadEvent>;
  remove(model: ModelId, options: { compiledOnly: boolean }): Promise<RemoveReport>;
}

/** Describes the decision for or against a device that was tried for the model in the slot. */
export interface DeviceDecision {
  device: Device;
  used: boolean;
  reason: string;
  /** Its measured accuracy and speed, and the CPU's; null if it was not measured. */
  figures: DeviceFigures | null;
}

export interface Slot {
  state: SlotState;
  /** The loaded model, or the one being loaded or unloaded, or the one that failed. */
  model: ModelId | null;
  /** The device in use; for an empty slot the one that would be used. */
  device: Device;
  /** Reason for the state `error`. */
  reason?: string;
  /**
   * The devices that were tried before the one that runs, and that one if it was measured; absent if only the CPU was
   * tried.
   */
  devices?: readonly DeviceDecision[];
  /** The form of the loaded model's weights, and why this one. */
  precision?: WeightForm;
  precisionReason?: string;
}

export interface LoadReport {
  model: ModelId;
  device: Device;
  load_ms: number;
  /** True if this call had to compile. */
  compiled: boolean;
  max_prompt_len: number;
}

export interface UnloadReport {
  /** The unloaded model; null for an empty slot. */
  model: ModelId | null;
}

export type DownloadEvent =
  | {
      type: 'progress';
      stage: 'downloading' | 'verifying' | 'compiling';
      bytes: number;
      total: number | null;
      file?: string;
      step?: string;
    }
  | { type: 'done'; report: DownloadReport };

export interface DownloadReport {
  model: ModelId;
  state: 'compiled';
  /** Bytes that this call fetched; 0 if everything was present. */
  bytes: number;
  /** True if the model had to be compiled. */
  compiled: boolean;
  max_prompt_len: number;
}

export interface RemoveReport {
  model: ModelId;
  /** The removed kinds, with their size in bytes. */
  removed: readonly { kind: 'compiled' | 'weights' | 'locks'; bytes: number }[];
  /** True if the weights are still on this machine: they were to stay, or are part of the program. */
  weightsLeft: boolean;
}
