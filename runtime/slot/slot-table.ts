import type { SlotState } from '../../lib/host.ts';

/** What makes the slot change. The first two come from callers, the others from the engine process. */
export const SLOT_TRIGGERS = ['load', 'unload', 'loaded', 'failed', 'unloaded', 'died', 'recovered'] as const;
export type SlotTrigger = (typeof SLOT_TRIGGERS)[number];

/**
 * The slot's state machine: (state, trigger) → next state. What is not here is not possible: a caller's trigger is then
 * answered 409 `operation_in_progress`. `docs/slot.md` prints this table.
 */
export const SLOT_TABLE: Readonly<Record<SlotState, Readonly<Partial<Record<SlotTrigger, SlotState>>>>> = {
  /** Nothing is in memory. Unloading it is allowed and does nothing. */
  unloaded: { load: 'loading', unload: 'unloaded' },
  /** The model is compiled if need be, and read into memory. */
  loading: { loaded: 'loaded', failed: 'error' },
  /** Answers. Loading another model first unloads this one. */
  loaded: { load: 'unloading', unload: 'unloading', died: 'error' },
  /** Requests in flight finish; no new ones are taken; then the engine process ends. */
  unloading: { unloaded: 'unloaded' },
  /** The last load failed, or the engine process died and is being started again; the slot tells the reason. */
  error: { load: 'loading', unload: 'unloaded', recovered: 'loaded' },
};

/** The state after a trigger, or null where the table has none. */
export function nextState(state: SlotState, trigger: SlotTrigger): SlotState | null {
  return SLOT_TABLE[state][trigger] ?? null;
}
