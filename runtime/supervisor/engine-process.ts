import type { Device } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type {
  CompileProgress,
  CompileReport,
  CompileSpec,
  EngineMemory,
  KvCells,
  LoadSpec,
  ModelInfo,
} from '../protocol/messages.ts';
import type { LifeListener, ModelLife } from './life-cycle.ts';

/**
 * Owns the model in a process of its own: native code, untrusted templates and model files run there, never in the
 * server. The process is watched (memory, steps that hang) and started again with the same model when it dies.
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
   * Compiles in another process, beside the one that serves. An abort kills it and leaves its files to the caller. The
   * caller also adds the text files (tokenizer, template, configuration) that `load` reads from the same folder.
   */
  compile(spec: CompileSpec, options?: CompileCall): Promise<CompileReport>;
  /**
   * Ends compiles and loads at once, because they can be repeated. Running requests continue; one that is stuck has
   * less time. To be followed by `close`.
   */
  beginClose(): void;
  /** Ends all processes at once; requests in flight fail. */
  close(): Promise<void>;
}

export interface EngineStatus extends ModelLife {
  /** Device that runs the model; null while none is loaded. */
  device: Device | null;
  /** Restarts after a death since the server started. */
  restarts: number;
  /** Requests in progress and in the queue of the engine process, as of its last heartbeat. */
  running: number;
  waiting: number;
  /** Requests with a slot in the admission queue: checked, waiting or running. */
  admitted: number;
  /** KV cells as of the last heartbeat. */
  kvCells: KvCells;
  /** Process id, for operators; null while there is no process. */
  pid: number | null;
  /** Resident memory of the process. */
  rssBytes: number | null;
  /** The part of it that JavaScript owns, as of the last heartbeat. */
  memory: EngineMemory | null;
}

export interface CompileCall {
  signal?: AbortSignal;
  onProgress?(progress: CompileProgress): void;
}
