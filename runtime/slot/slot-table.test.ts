import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { SLOT_STATES, type SlotState } from '../../lib/host.ts';
import { nextState, SLOT_TABLE, SLOT_TRIGGERS, type SlotTrigger } from './slot-table.ts';

describe('the slot table', () => {
  // Written out again on purpose: a change of the table must be meant.
  it.each<[SlotState, SlotTrigger, SlotState | null]>([
    ['unloaded', 'load', 'loading'],
    ['unloaded', 'unload', 'unloaded'],
    ['unloaded', 'died', null],
    ['loading', 'loaded', 'loaded'],
    ['loading', 'failed', 'error'],
    ['loading', 'load', null],
    ['loading', 'unload', null],
    ['loaded', 'load', 'unloading'],
    ['loaded', 'unload', 'unloading'],
    ['loaded', 'died', 'error'],
    ['unloading', 'unloaded', 'unloaded'],
    ['unloading', 'load', null],
    ['unloading', 'unload', null],
    ['error', 'load', 'loading'],
    ['error', 'unload', 'unloaded'],
    ['error', 'recovered', 'loaded'],
  ])('%s, %s: %s', (state, trigger, next) => {
    expect(nextState(state, trigger)).toBe(next);
  });

  it('leads from every state back to an empty slot', () => {
    for (const from of SLOT_STATES) {
      const reached = new Set<SlotState>([from]);
      for (const state of reached) for (const next of Object.values(SLOT_TABLE[state])) reached.add(next);
      expect(reached, from).toContain('unloaded');
    }
  });

  it('is the one that docs/slot.md prints', async () => {
    const page = await readFile(new URL('../../docs/slot.md', import.meta.url), 'utf8');
    const rows = SLOT_STATES.flatMap((state) =>
      SLOT_TRIGGERS.flatMap((trigger) =>
        nextState(state, trigger) ? [`| \`${state}\` | ${trigger} | \`${nextState(state, trigger)}\` |`] : [],
      ),
    );
    const printed = page
      .split('\n')
      .filter((line) => /^\| `/.test(line))
      .map((line) => `${line.split('|').slice(0, 4).join('|')}|`);
    expect(printed).toEqual(rows);
  });
});
