import type { Device } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { EngineMemory, KvCells, LoadSpec, ModelInfo } from '../protocol/messages.ts';
import type { CallOptions, EngineCall } from './calls/call.ts';
import type { LifeListener, ModelLife } from './life-cycle.ts';

/** Tells a client of this host what to do while no model is loaded. */
export const HOW_TO_LOAD = 'Load one with POST /load or "assay load <model>".';

/**
 * Runs one model in its own process: native code, untrusted templates and model files are handled there, never
 * in the server. The process is watched for memory and hung steps, and is restarted with the same model if it dies.
 */
export interface EngineProcess {
  /** Returns the state of the model and of its process. */
  status(): EngineStatus;
  /** Registers a listener that is called after every event of the model's life cycle, and after `close`. */
  onEvent(listener: LifeListener): void;
  /**
   * Enters the state `loading` for a model that must be compiled first. Throws `Error` unless the state is `unloaded`
   * or `failed`.
   */
  beginLoad(model: ModelId): void;
  /**
   * Enters the state `failed`, because the compile that `beginLoad` announced failed with `error`. Throws `Error`
   * unless the state is `loading` or `restarting`.
   */
  failLoad(error: unknown): void;
  /**
   * Loads a compiled model; resolves once it can answer requests. Unloads another model first (see `unload`). Rejects
   * with the error that the engine process reports, with `engine_failed` if it dies, and with `internal_error` if the
   * server shuts down; no model is loaded then.
   */
  load(spec: LoadSpec): Promise<ModelInfo>;
  /**
   * Stops accepting requests, lets those in flight finish, then ends the process, which frees all its memory. Abandons
   * a restart that is under way.
   */
  unload(): Promise<void>;
  /**
   * Begins the shutdown: ends a load at once, because it can be repeated. Requests in flight continue.
   * The caller must call `close` afterwards.
   */
  beginClose(): void;
  /** Kills the process; requests in flight fail. */
  close(): Promise<void>;
}

/** Sends requests to the engine process. */
export interface EngineCalls {
  /**
   * Admits one request and returns its call, which sends nothing before `Call.prepare`. Throws `overloaded` at once if
   * the queue is full. Waits up to `restartWaitMs` for a restart of the engine process. Throws `engine_failed` if it is
   * not running by then, and `model_not_loaded` if no model is loaded.
   */
  call(options: CallOptions): Promise<EngineCall>;
}

export interface EngineStatus extends ModelLife {
  /** Device that runs the model; null except in the states `loaded` and `unloading`. */
  device: Device | null;
  /** Number of restarts after a death of the process, since the server started. */
  restarts: number;
  /** Number of requests that the engine process runs, as of its last heartbeat. */
  running: number;
  /** Number of requests in the engine process's queue, as of its last heartbeat. */
  waiting: number;
  /** Number of requests that the admission queue has admitted: being checked, waiting or running. */
  admitted: number;
  /** Tokens of work of these requests: prompts, and up to 256 tokens of each answer. */
  admittedTokens: number;
  /** KV cells in use, as of the last heartbeat. */
  kvCells: KvCells;
  /** Number of prefixes that the engine process could not save, as of its last heartbeat. */
  saveFailures: number;
  /** Milliseconds since the engine process last said something; null if there is none. */
  silentMs: number | null;
  /** True if the engine process has said nothing for some seconds although it could have. */
  unresponsive: boolean;
  /** The operating system's id of the engine process; null if there is none. */
  pid: number | null;
  /** Resident memory of the engine process in bytes; null if there is none, or it has not reported its memory yet. */
  rssBytes: number | null;
  /** JavaScript heap and buffers of the engine process, as of its last heartbeat; null if there was none. */
  memory: EngineMemory | null;
}
