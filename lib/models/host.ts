import type { Device, ListedModel } from '../backend.ts';
import type { ModelId } from '../model-id.ts';
import type { DeviceFigures } from '../schema/device-figures.ts';
import type { DownloadProgress, DownloadResponse, LoadResponse } from '../schema/model-operations.ts';
import type { Precision } from '../schema/precision.ts';
import type { ModelState } from './model-states.ts';

/**
 * Manages the models of a machine: their files, and those that are in memory. Every method reports failures
 * as `AssayError` (docs/model-api.md, M-6 to M-11).
 */
export interface ModelHost {
  /** Describes the model that was loaded last, or else one that is being loaded or failed to load. */
  active(): ModelView;
  /** Describes all models in memory, those being loaded, and those that failed to load; first that of `active`. */
  inMemory(): readonly ModelView[];
  /** Returns the memory of the models; null if a load replaces the loaded model. */
  memory(): { usedBytes: number; budgetBytes: number } | null;
  listModels(): Promise<readonly ListedModel[]>;
  load(model: ModelId, options: LoadOptions): Promise<LoadReport>;
  /** Unloads a model; by default, that of `active`. */
  unload(model?: ModelId): Promise<UnloadReport>;
  /**
   * Downloads and compiles a model. Yields progress events and finally one `done`. If `leaving` aborts because the
   * caller has disconnected, the download continues, unless it is still fetching the list of files. A second call for
   * the same model joins the first.
   */
  download(
    model: ModelId,
    options: { maxPromptLen?: number; allowDownload: boolean },
    leaving?: AbortSignal,
  ): AsyncIterable<HostDownloadEvent>;
  remove(model: ModelId, options: { compiledOnly: boolean }): Promise<RemoveReport>;
}

export interface LoadOptions {
  maxPromptLen?: number;
  /**
   * True to keep the other models in memory, if the memory allows; false to unload them. Default: true if the server is
   * set up for several models.
   */
  keepOthers?: boolean;
  /** Says whether to unload the models that were used least recently if memory is short. Default: as set up. */
  evict?: boolean;
}

/** Describes a device that was tried for a model: whether it is used, and the reason. */
export interface DeviceDecision {
  device: Device;
  used: boolean;
  reason: string;
  /** Measured accuracy and speed of the device compared with the CPU; null if the device was not measured. */
  figures: DeviceFigures | null;
}

/** Describes one model in memory, or the lack of one. */
export interface ModelView {
  state: ModelState;
  /** The model that is loaded, is being loaded or unloaded, or failed; null if there is none. */
  model: ModelId | null;
  /** The device in use; if there is no model, the device that one would use. */
  device: Device;
  /** Reason for the states `restarting` and `failed`. */
  reason?: string;
  /**
   * The devices that were tried before the one in use, and that one too if it was measured; absent if only the CPU was
   * tried.
   */
  devices?: readonly DeviceDecision[];
  /** Milliseconds since the engine process last said something; absent if there is none. */
  silentMs?: number;
  /** True if the engine process has said nothing for some seconds although it could have. */
  unresponsive?: boolean;
  /** Number format of the loaded model's weights; absent if there is none or its format is not known. */
  precision?: Precision;
  /** Reason for this number format. */
  precisionReason?: string;
  /** Reason why an answer may depend on what runs beside it; null if it does not; absent if that is not known. */
  dependence?: string | null;
  /** Maximum tokens of one prompt of the loaded model; absent if there is none. */
  maxPromptLen?: number;
  /** Bytes of memory that the model counts with; absent if the server holds one model. */
  memoryBytes?: number;
}

/** Holds the fields of a response that a host reports, with the id of the model that was checked. */
type Reported<Response> = Omit<Response, 'status' | 'model'> & { model: ModelId };
export type LoadReport = Omit<Reported<LoadResponse>, 'state'>;
export type DownloadReport = Reported<DownloadResponse>;
/** Reports the precision of a model; an earlier version of Assay may not have recorded it at the compile. */
export type PrecisionReport = Pick<LoadReport, 'precision' | 'precision_reason' | 'precision_warning'>;

export interface UnloadReport {
  /** The unloaded model; null if there is none. */
  model: ModelId | null;
}

export type HostDownloadEvent =
  | ({ type: 'progress'; stage: DownloadProgress['status'] } & Omit<DownloadProgress, 'status' | 'model'>)
  | { type: 'done'; report: DownloadReport };

export interface RemoveReport {
  model: ModelId;
  /** The kinds of files that were removed, with their size in bytes. */
  removed: readonly { kind: 'compiled' | 'weights' | 'locks'; bytes: number }[];
  /**
   * True if the model's weights are still on this machine, because only compiled files were to be removed or the
   * weights are part of the program.
   */
  weightsLeft: boolean;
}
