import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

function* part(order: string[], name: string): Generator<void, void> {
  yield;
  order.push(name);
}

test('batch work of a caller does not keep its other work waiting', async () => {
  const turns = new Turns();
  const order: string[] = [];
  const options = { signal: new AbortController().signal, onSlice: () => {} };
  const run = (name: string, priority?: 'batch') => turns.run({ caller: 'ann', priority }, part(order, name), options);
  await Promise.all([...['b1', 'b2', 'b3', 'b4'].map((name) => run(name, 'batch')), run('now')]);
  expect(order).toHaveLength(5);
  expect(order.indexOf('now')).toBeLessThanOrEqual(1);
});
