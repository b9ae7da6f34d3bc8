import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import { type ModelEvent, type ModelState, nextState } from '../../lib/models/model-states.ts';
import type { ModelInfo } from '../protocol/messages.ts';

/** Describes the model that is in memory, being loaded or unloaded, or that failed to load. */
export interface ModelLife {
  readonly state: ModelState;
  /** Id of the model; null in the state `unloaded`. */
  readonly model: ModelId | null;
  /** Facts about the loaded model, in the states `loaded` and `unloading`; otherwise null. */
  readonly info: ModelInfo | null;
  /** Reason for the state `restarting` or `failed`; null in all others. */
  readonly reason: string | null;
}

export type LifeListener = (now: ModelLife, event: ModelEvent | 'close') => void;

const EMPTY: ModelLife = { state: 'unloaded', model: null, info: null, reason: null };

/** Holds the state of the model, changes it by `MODEL_STATES`, and reports every event to its listeners. */
export class LifeCycle {
  #now = EMPTY;
  #closed = false;
  readonly #listeners: LifeListener[] = [];

  get now(): ModelLife {
    return this.#now;
  }

  get closed(): boolean {
    return this.#closed;
  }

  onEvent(listener: LifeListener): void {
    this.#listeners.push(listener);
  }

  /**
   * Enters the state that follows from an event, with the members of `change`. Of the others, `model` is kept, `info`
   * is kept only in `unloading`, and `reason` becomes null. Throws `Error` if the event is not possible in the current
   * state. Does nothing after `close`.
   */
  apply(event: ModelEvent, change: Partial<Omit<ModelLife, 'state'>> = {}): void {
    if (this.#closed) return;
    const { state, model, info } = this.#now;
    const next = nextState(state, event);
    if (next === null) throw new Error(`the model cannot go through "${event}" while it is ${state}`);
    const kept = { model, info: next === 'unloading' ? info : null, reason: null };
    this.#enter(next === 'unloaded' ? EMPTY : { ...kept, ...change, state: next }, event);
  }

  /** Enters the state `unloaded` from any state. Later events are ignored. */
  close(): void {
    this.#closed = true;
    this.#enter(EMPTY, 'close');
  }

  #enter(next: ModelLife, event: ModelEvent | 'close'): void {
    this.#now = next;
    for (const listener of this.#listeners) listener(next, event);
  }
}

/**
 * Returns the text about a failed load that callers may read: the message of an `AssayError`, otherwise a fixed
 * sentence, because messages of other errors may contain paths.
 */
export function reasonOf(error: unknown): string {
  return error instanceof AssayError ? error.message : 'The engine could not load the model; the log says why.';
}

/** Returns the `internal_error` of a load or download that the shutdown of the server ends. */
export function shuttingDown(): AssayError {
  return new AssayError('internal_error', 'The server is shutting down. Start it again, then repeat the request.');
}

/** Returns the `engine_failed` of a request that the shutdown of the server ends. */
export function endedByShutdown(): AssayError {
  const message =
    'The server is shutting down and has ended this request. Send it again; another server may answer it.';
  return new AssayError('engine_failed', message);
}
