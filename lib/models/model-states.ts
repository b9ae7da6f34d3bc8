import type { ModelStatus } from '../schema/model-list.ts';
import type { Health, ModelHealth } from '../schema/status.ts';

/** Names the states of a model on a machine (docs/registry.md). */
export type ModelState =
  | 'unloaded'
  | 'downloading'
  | 'verifying'
  | 'compiling'
  | 'deleting'
  | 'loading'
  | 'loaded'
  | 'unloading'
  | 'restarting'
  | 'failed';

/**
 * Events that change the state of a model. Callers request `download`, `delete`, `load` and `unload`; the others report
 * what the work or the engine process did.
 */
export const MODEL_EVENTS = [
  ...(['download', 'downloading', 'verifying', 'compiling', 'delete', 'ended'] as const),
  ...(['load', 'unload', 'loaded', 'failed', 'unloaded', 'died', 'recovered'] as const),
] as const;
export type ModelEvent = (typeof MODEL_EVENTS)[number];

interface StateRow {
  /** The `state` of `GET /health`. */
  state: ModelHealth['state'];
  /** The `status` of `GET /health`. */
  health: Health['status'];
  /** The `status` in the model list; null: the model's files decide. */
  listed: ModelStatus | null;
  /** Says in errors why the model is busy. One that is not in memory is busy only while a load looks for its files. */
  doing: string;
  /** The next state for each possible event; all other events are errors. */
  next: Readonly<Partial<Record<ModelEvent, ModelState>>>;
}

const STEPS = {
  downloading: 'downloading',
  verifying: 'verifying',
  compiling: 'compiling',
  ended: 'unloaded',
} as const;
const NOT_IN_MEMORY = { state: 'unloaded', health: 'idle' } as const;

/**
 * Has a row for each state of a model: what it is called in answers and errors, and what may come next.
 * `docs/registry.md` prints the transitions.
 */
export const MODEL_STATES: Readonly<Record<ModelState, StateRow>> = {
  /** The model is not in memory, and nothing is done to its files. */
  unloaded: {
    ...NOT_IN_MEMORY,
    listed: null,
    doing: 'being loaded',
    next: { download: 'downloading', delete: 'deleting', load: 'loading', unload: 'unloaded' },
  },
  downloading: { ...NOT_IN_MEMORY, listed: 'downloading', doing: 'being downloaded', next: STEPS },
  verifying: { ...NOT_IN_MEMORY, listed: 'downloading', doing: 'being verified', next: STEPS },
  compiling: { ...NOT_IN_MEMORY, listed: 'compiling', doing: 'being compiled', next: STEPS },
  deleting: { ...NOT_IN_MEMORY, listed: null, doing: 'being deleted', next: { ended: 'unloaded' } },
  /** The model is compiled if needed, then loaded into memory. */
  loading: {
    state: 'loading',
    health: 'loading',
    listed: 'loading',
    doing: 'being loaded',
    next: { loaded: 'loaded', failed: 'failed' },
  },
  /** The model answers requests. */
  loaded: {
    state: 'loaded',
    health: 'ok',
    listed: 'active',
    doing: 'loaded',
    next: { unload: 'unloading', died: 'restarting' },
  },
  /** Requests in flight finish and no new ones start; then the engine process ends. */
  unloading: {
    state: 'unloading',
    health: 'loading',
    listed: 'unloading',
    doing: 'being unloaded',
    next: { unloaded: 'unloaded' },
  },
  /** The engine process died. The same model is loaded again, after a pause that grows with every failure. */
  restarting: {
    state: 'error',
    health: 'error',
    listed: 'error',
    doing: 'being started again',
    next: { unload: 'unloaded', failed: 'restarting', recovered: 'loaded' },
  },
  /** The last load failed; no model is in memory. */
  failed: {
    state: 'error',
    health: 'error',
    listed: 'error',
    doing: 'being loaded',
    next: { load: 'loading', unload: 'unloaded' },
  },
};

/** Returns the state after an event, or null if the event is not possible in that state. */
export function nextState(state: ModelState, event: ModelEvent): ModelState | null {
  return MODEL_STATES[state].next[event] ?? null;
}
