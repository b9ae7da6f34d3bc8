import type { Device } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { CompileProgress, CompileReport, CompileSpec, LoadSpec, ModelInfo } from '../protocol/messages.ts';
import type { LifeListener, ModelLife } from './life-cycle.ts';

/**
 * The process that owns the model: native code, templates and model files of strangers run there, never in the server. It
 * is watched (memory, steps that hang) and started again with the same model when it dies.
 */
export interface EngineProcess {
  status(): EngineStatus;
  /** Calls the listener after every event of the model's life cycle. */
  onEvent(listener: LifeListener): void;
  /** Enters `loading` for a model that still has to be compiled. The slot must be empty or `failed`. */
  beginLoad(model: ModelId): void;
  /** Enters `failed` when that compile fails. */
  failLoad(error: unknown): void;
  /**
   * Loads a compiled model, and resolves when it answers. Unloads another one first (see `unload`).
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

export interface EngineStatus extends ModelLife {
  /** The device that really runs; null while nothing is loaded. */
  device: Device | null;
  /** How often the process was started again after it died. */
  restarts: number;
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
