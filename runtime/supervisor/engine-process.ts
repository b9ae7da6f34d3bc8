import type { Device } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { CompileProgress, CompileReport, CompileSpec, LoadSpec, ModelInfo } from '../protocol/messages.ts';

/**
 * The process that owns the model: native code, templates and model files of strangers run there, never in the server. It
 * is watched (memory, steps that hang) and started again with the same model when it dies.
 */
export interface EngineProcess {
  status(): EngineStatus;
  /**
   * Loads a compiled model. Another one that is loaded is unloaded first (see `unload`). Ends when the model answers.
   * Throws `engine_failed` with the reason; nothing is loaded then.
   */
  load(spec: LoadSpec): Promise<ModelInfo>;
  /** Takes no new requests, lets those in flight finish, then ends the process, so that all its memory is free. */
  unload(): Promise<void>;
  /**
   * Compiles in a process of its own, beside the one that serves. An abort kills it; what it wrote stays for the caller, who
   * also adds the text files (tokenizer, template, configuration) that `load` reads from the same folder.
   */
  compile(spec: CompileSpec, options?: CompileCall): Promise<CompileReport>;
  /** Ends everything at once; requests in flight fail. */
  close(): Promise<void>;
}

/** `restarting`: the process died and the same model is being loaded again. */
export const ENGINE_STATES = ['stopped', 'loading', 'ready', 'restarting', 'stopping'] as const;
export type EngineState = (typeof ENGINE_STATES)[number];

export interface EngineStatus {
  state: EngineState;
  /** The loaded model; while `loading` and `restarting` the one that is wanted, without `info`. */
  model: ModelId | null;
  info: ModelInfo | null;
  /** The device that really runs; null while nothing is loaded. */
  device: Device | null;
  /** How often the process was started again after it died. */
  restarts: number;
  /** Why it died or did not load, the last time. */
  reason: string | null;
  /** Requests that are being answered, and that wait. */
  running: number;
  waiting: number;
  /** The process, for operators; null while there is none. */
  pid: number | null;
  /** Its resident memory. */
  rssBytes: number | null;
}

export interface CompileCall {
  signal?: AbortSignal;
  onProgress?(progress: CompileProgress): void;
}
