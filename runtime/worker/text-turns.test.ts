import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { nameOf } from '../../lib/limits/fair-turns.ts';
import { TextTurns } from './text-turns.ts';

function* part(order: string[], name: string): Generator<void, void> {
  yield;
  order.push(name);
}

test('batch work of a caller does not keep its other work waiting', async () => {
  const turns = new TextTurns();
  const order: string[] = [];
  const options = { signal: new AbortController().signal, onSlice: () => {} };
  const run = (name: string, priority?: 'batch') =>
    turns.run(nameOf({ caller: 'ann', priority }), part(order, name), options);
  await Promise.all([...['b1', 'b2', 'b3', 'b4'].map((name) => run(name, 'batch')), run('now')]);
  expect(order).toHaveLength(5);
  expect(order.indexOf('now')).toBeLessThanOrEqual(1);
});

describe('between slices of text work', () => {
  function start() {
    const slices: string[] = [];
    const onSlice = (event: 'begin' | 'end') => void slices.push(event);
    const end = performance.now() + 200;
    function* long(): Generator<void, void> {
      while (performance.now() < end) yield;
    }
    const running = new TextTurns().run('ann', long(), { signal: new AbortController().signal, onSlice });
    return { slices, running };
  }

  test('other work gets many iterations of the event loop', async () => {
    const { slices, running } = start();
    for (let i = 0; i < 30; i++) await setImmediate();
    expect(slices.length).toBeLessThan(6);
    await running;
    expect(slices.length).toBeGreaterThan(10);
  });

  test('one iteration that takes as long as a slice is enough', async () => {
    const { slices, running } = start();
    for (let i = 0; i < 5; i++) {
      await setImmediate();
      for (const end = performance.now() + 10; performance.now() < end; );
    }
    expect(slices.length).toBeGreaterThanOrEqual(4);
    await running;
  });
});
