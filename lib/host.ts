import type { Device, ListedModel } from './backend.ts';
import type { ModelId } from './model-id.ts';
import type { DeviceFigures } from './schema/device-figures.ts';
import type { SlotState } from './schema/status.ts';
import type { WeightForm } from './schema/weight-form.ts';

export type { SlotState } from './schema/status.ts';

/**
 * Manages the models of a machine: their files, and the one slot in which a model is loaded. Every method throws
 * `AssayError` (docs/interface.md, M-6 to M-11).
 */
export interface ModelHost {
  slot(): Slot;
  listModels(): Promise<readonly ListedModel[]>;
  load(model: ModelId, options: { maxPromptLen?: number }): Promise<LoadReport>;
  unload(): Promise<UnloadReport>;
  /**
   * Downloads and compiles a model, and yields progress events, finally one `done`. The download continues after its
   * reader has left (`leaving` aborts), unless the list of files is still being read. A second call for the same model
   * joins the first.
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
  /** Measured accuracy and speed of the device, and of the CPU; null if the device was not measured. */
  figures: DeviceFigures | null;
}

export interface Slot {
  state: SlotState;
  /** The model that is loaded, is being loaded or unloaded, or failed; null for an empty slot. */
  model: ModelId | null;
  /** The device in use; for an empty slot the one that would be used. */
  device: Device;
  /** Reason for the state `error`. */
  reason?: string;
  /**
   * The devices that were tried before the one in use, and that one if it was measured; absent if only the CPU was
   * tried.
   */
  devices?: readonly DeviceDecision[];
  /** Number format of the loaded model's weights. */
  precision?: WeightForm;
  /** Reason for this number format. */
  precisionReason?: string;
}

/** Tells the form of a model's weights; absent for a form that an earlier version compiled. */
export interface FormReport {
  precision?: WeightForm;
  precision_reason?: string;
  /** Warns that answers may be worse in the requested form, and says what to do; absent for an accurate form. */
  precision_warning?: string;
}

export interface LoadReport extends FormReport {
  model: ModelId;
  device: Device;
  load_ms: number;
  /** True if this call had to compile the model. */
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

export interface DownloadReport extends FormReport {
  model: ModelId;
  state: 'compiled';
  /** Bytes that this call downloaded; 0 if all files were present. */
  bytes: number;
  /** True if the model had to be compiled. */
  compiled: boolean;
  max_prompt_len: number;
}

export interface RemoveReport {
  model: ModelId;
  /** The kinds of files that were removed, with their size in bytes. */
  removed: readonly { kind: 'compiled' | 'weights' | 'locks'; bytes: number }[];
  /**
   * True if the weights are still on this machine, because only compiled files were to be removed or the weights are
   * part of the program.
   */
  weightsLeft: boolean;
}
