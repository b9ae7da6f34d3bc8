import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { ModelInfo } from '../protocol/messages.ts';

export const MODEL_STATES = ['unloaded', 'loading', 'loaded', 'unloading', 'restarting', 'failed'] as const;
export type ModelState = (typeof MODEL_STATES)[number];

/**
 * Events that change the state. Callers ask for `load` and `unload`; the others report what the engine process did.
 */
export const MODEL_EVENTS = ['load', 'unload', 'loaded', 'failed', 'unloaded', 'died', 'recovered'] as const;
export type ModelEvent = (typeof MODEL_EVENTS)[number];

/** Maps state and event to the next state. Anything else is impossible. `docs/slot.md` prints this table. */
export const LIFE_CYCLE: Readonly<Record<ModelState, Readonly<Partial<Record<ModelEvent, ModelState>>>>> = {
  /** Nothing is in memory. */
  unloaded: { load: 'loading', unload: 'unloaded' },
  /** The model is compiled if need be, then read into memory. */
  loading: { loaded: 'loaded', failed: 'failed' },
  /** The model answers requests. */
  loaded: { unload: 'unloading', died: 'restarting' },
  /** Requests in flight finish and no new ones start; then the engine process ends. */
  unloading: { unloaded: 'unloaded' },
  /** The engine process died; the same model is loaded again, after a pause that grows with every failure. */
  restarting: { unload: 'unloaded', failed: 'restarting', recovered: 'loaded' },
  /** The last load failed; nothing is in memory. */
  failed: { load: 'loading', unload: 'unloaded' },
};

/** Returns the state after an event, or null when the event cannot happen in that state. */
export function nextState(state: ModelState, event: ModelEvent): ModelState | null {
  return LIFE_CYCLE[state][event] ?? null;
}

/** Describes the model in memory, or on its way in or out. */
export interface ModelLife {
  readonly state: ModelState;
  /** The model; null while `unloaded`. */
  readonly model: ModelId | null;
  /** Set while `loaded` and `unloading`. */
  readonly info: ModelInfo | null;
  /** Says why the state is `restarting` or `failed`; null in all others. */
  readonly reason: string | null;
}

export type LifeListener = (now: ModelLife, event: ModelEvent | 'close') => void;

const EMPTY: ModelLife = { state: 'unloaded', model: null, info: null, reason: null };

/** Follows the model through `LIFE_CYCLE` and tells listeners about every event. Reading it changes nothing. */
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
   * Applies an event. The model stays the same unless `change` names another. Throws when the event cannot happen now.
   */
  apply(event: ModelEvent, change: Partial<Omit<ModelLife, 'state'>> = {}): void {
    if (this.#closed) return;
    const { state, model, info } = this.#now;
    const next = nextState(state, event);
    if (next === null) throw new Error(`the model cannot go through "${event}" while it is ${state}`);
    const kept = { model, info: next === 'unloading' ? info : null, reason: null };
    this.#enter(next === 'unloaded' ? EMPTY : { ...kept, ...change, state: next }, event);
  }

  /** Empties the slot from any state, for good: later events are ignored. */
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
 * Returns what callers may read about a failure. Only an `AssayError` is written for them; other messages may hold a
 * path.
 */
export function reasonOf(error: unknown): string {
  return error instanceof AssayError ? error.message : 'The engine could not load the model; the log says why.';
}
