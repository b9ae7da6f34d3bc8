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
import type { Call, CallOptions } from './calls/call.ts';
import type { LifeListener, ModelLife } from './life-cycle.ts';

/**
 * Runs the loaded model in its own process: native code, untrusted templates and model files are handled there, never
 * in the server. The process is watched for memory and hung steps, and is restarted with the same model if it dies.
 */
export interface EngineProcess {
  status(): EngineStatus;
  /** Registers a listener that is called after every event of the model's life cycle. */
  onEvent(listener: LifeListener): void;
  /** Enters the state `loading` for a model that must be compiled first. The state must be `unloaded` or `failed`. */
  beginLoad(model: ModelId): void;
  /** Enters the state `failed` after the compile that `beginLoad` announced has failed. */
  failLoad(error: unknown): void;
  /**
   * Loads a compiled model; resolves once it can answer requests. Unloads another model first (see `unload`). Rejects
   * with `engine_failed` and the reason; no model is loaded then.
   */
  load(spec: LoadSpec): Promise<ModelInfo>;
  /** Stops accepting requests, lets those in flight finish, then ends the process, which frees all its memory. */
  unload(): Promise<void>;
  /**
   * Compiles a model in another process, beside the one that serves. An abort kills that process; the caller then
   * removes its files. The caller must also copy the text files (tokenizer, template, configuration) that `load` reads
   * from the same folder.
   */
  compile(spec: CompileSpec, options?: CompileCall): Promise<CompileReport>;
  /**
   * Begins the shutdown: ends compiles and loads at once, because they can be repeated. Requests in flight continue,
   * but a process that is stuck is killed sooner. The caller must call `close` afterwards.
   */
  beginClose(): void;
  /** Kills all processes; requests in flight fail. */
  close(): Promise<void>;
}

/** Sends requests to the engine process. */
export interface EngineCalls {
  /**
   * Admits one request. Throws `overloaded` at once if the queue is full. Waits for a restart of the engine process,
   * and throws `model_not_loaded` or `engine_failed` if it does not run by then.
   */
  call(options: CallOptions): Promise<Call>;
}

export interface EngineStatus extends ModelLife {
  /** Device that runs the model; null if none is loaded. */
  device: Device | null;
  /** Number of restarts after a death of the process, since the server started. */
  restarts: number;
  /** Number of requests that the engine process runs, as of its last heartbeat. */
  running: number;
  /** Number of requests in the engine process's queue, as of its last heartbeat. */
  waiting: number;
  /** Number of requests that hold a slot of the admission queue: being checked, waiting or running. */
  admitted: number;
  /** KV cells in use, as of the last heartbeat. */
  kvCells: KvCells;
  /** The operating system's id of the engine process; null if there is none. */
  pid: number | null;
  /** Resident memory of the engine process in bytes; null if unknown. */
  rssBytes: number | null;
  /** JavaScript heap and buffers of the engine process, as of the last heartbeat. */
  memory: EngineMemory | null;
}

export interface CompileCall {
  signal?: AbortSignal;
  onProgress?(progress: CompileProgress): void;
}
