import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { AssayError } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import {
  MODEL_EVENTS,
  MODEL_STATES,
  type ModelEvent,
  type ModelState,
  nextState,
} from '../../lib/models/model-states.ts';
import type { ModelInfo } from '../protocol/messages.ts';
import { LifeCycle, reasonOf } from './life-cycle.ts';

// A cast: the keys of the table are the states.
const STATES = Object.keys(MODEL_STATES) as ModelState[];

describe('the table of transitions', () => {
  // The table is repeated here on purpose, to catch unintended changes of it.
  it.each<[ModelState, ModelEvent, ModelState | null]>([
    ['unloaded', 'load', 'loading'],
    ['unloaded', 'unload', 'unloaded'],
    ['unloaded', 'died', null],
    ['unloaded', 'download', 'downloading'],
    ['unloaded', 'delete', 'deleting'],
    ['downloading', 'verifying', 'verifying'],
    ['downloading', 'delete', null],
    ['downloading', 'load', null],
    ['verifying', 'downloading', 'downloading'],
    ['verifying', 'compiling', 'compiling'],
    ['compiling', 'ended', 'unloaded'],
    ['compiling', 'download', null],
    ['deleting', 'ended', 'unloaded'],
    ['deleting', 'download', null],
    ['deleting', 'load', null],
    ['loading', 'delete', null],
    ['loaded', 'delete', null],
    ['loading', 'loaded', 'loaded'],
    ['loading', 'failed', 'failed'],
    ['loading', 'load', null],
    ['loading', 'unload', null],
    ['loaded', 'load', null],
    ['loaded', 'unload', 'unloading'],
    ['loaded', 'died', 'restarting'],
    ['unloading', 'unloaded', 'unloaded'],
    ['unloading', 'load', null],
    ['unloading', 'unload', null],
    ['restarting', 'load', null],
    ['restarting', 'unload', 'unloaded'],
    ['restarting', 'failed', 'restarting'],
    ['restarting', 'recovered', 'loaded'],
    ['failed', 'load', 'loading'],
    ['failed', 'unload', 'unloaded'],
    ['failed', 'recovered', null],
  ])('%s, %s: %s', (state, event, next) => {
    expect(nextState(state, event)).toBe(next);
  });

  it('leads from every state back to none in memory', () => {
    for (const from of STATES) {
      const reached = new Set<ModelState>([from]);
      for (const state of reached) for (const next of Object.values(MODEL_STATES[state].next)) reached.add(next);
      expect(reached, from).toContain('unloaded');
    }
  });

  it('is the one that docs/registry.md prints', async () => {
    const page = await readFile(new URL('../../docs/registry.md', import.meta.url), 'utf8');
    const rows = STATES.flatMap((state) =>
      MODEL_EVENTS.flatMap((event) =>
        nextState(state, event) ? [`| \`${state}\` | ${event} | \`${nextState(state, event)}\` |`] : [],
      ),
    );
    const printed = page
      .split('\n')
      .filter((line) => /^\| `/.test(line))
      .map((line) => `${line.split('|').slice(0, 4).join('|')}|`);
    expect(printed).toEqual(rows);
  });
});

describe('the life cycle', () => {
  const model = 'test/one' as ModelId;
  const info: ModelInfo = { model, device: 'CPU', maxPromptLen: 8, contextLength: 16, loadMs: 1 };
  const empty = { state: 'unloaded', model: null, info: null, reason: null };

  it('tells listeners every event, with the model and the reason where the state has them', () => {
    const life = new LifeCycle();
    const seen: unknown[] = [];
    life.onEvent((now, event) => seen.push({ ...now, event }));
    life.apply('load', { model });
    life.apply('loaded', { info });
    life.apply('died', { reason: 'It ran out of memory.' });
    life.apply('failed', { reason: 'A file is gone.' });
    life.apply('recovered', { info });
    life.apply('unload');
    life.apply('unloaded');
    expect(seen).toEqual([
      { event: 'load', state: 'loading', model, info: null, reason: null },
      { event: 'loaded', state: 'loaded', model, info, reason: null },
      { event: 'died', state: 'restarting', model, info: null, reason: 'It ran out of memory.' },
      { event: 'failed', state: 'restarting', model, info: null, reason: 'A file is gone.' },
      { event: 'recovered', state: 'loaded', model, info, reason: null },
      { event: 'unload', state: 'unloading', model, info, reason: null },
      { event: 'unloaded', ...empty },
    ]);
  });

  it('refuses an event that the table does not have, and stays as it was', () => {
    const life = new LifeCycle();
    life.apply('load', { model });
    expect(() => life.apply('unload')).toThrow('the model cannot go through "unload" while it is loading');
    expect(life.now).toMatchObject({ state: 'loading', model });
  });

  it('is empty for good once it is closed, whatever state it was in', () => {
    const life = new LifeCycle();
    life.apply('load', { model });
    life.close();
    life.apply('loaded', { info });
    expect(life.now).toEqual(empty);
  });
});

it('shows callers only messages that were written for them', () => {
  expect(reasonOf(new AssayError('engine_failed', 'The graph is damaged.'))).toBe('The graph is damaged.');
  expect(reasonOf(new Error('/home/me/model.onnx is odd'))).not.toContain('/home');
});
