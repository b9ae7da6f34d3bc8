import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { FairTurns } from './fair-turns.ts';

/** Returns work that records its name, and takes some milliseconds. */
const work = (order: string[], name: string) => async () => {
  order.push(name);
  await sleep(2);
  return name;
};

test('one work at a time, of the caller first that has used least', async () => {
  const turns = new FairTurns();
  const order: string[] = [];
  const all = ['a1', 'a2', 'a3', 'b1'].map((name) => turns.run(name.slice(0, 1), work(order, name)));
  expect([turns.waiting(), turns.waiting('a'), turns.waiting('b')]).toEqual([3, 2, 1]);
  expect(order).toEqual(['a1']);
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1']);
  expect(order).toEqual(['a1', 'b1', 'a2', 'a3']);
});

test('a fault ends its own work only', async () => {
  const turns = new FairTurns();
  const faulty = turns.run('a', () => {
    throw new Error('faulty');
  });
  const [first, second] = await Promise.allSettled([faulty, turns.run('a', () => 2)]);
  expect(first).toMatchObject({ reason: { message: 'faulty' } });
  expect(second).toMatchObject({ value: 2 });
});

test('a caller that leaves waits no longer: its waiting work is dropped, and work that began keeps its turn', async () => {
  const turns = new FairTurns();
  const order: string[] = [];
  const begun = new AbortController();
  const waiting = new AbortController();
  const ended = Promise.withResolvers<void>();
  const asked = [
    turns.run('a', () => ended.promise, begun.signal),
    turns.run('a', work(order, 'dropped'), waiting.signal),
    turns.run('b', work(order, 'next')),
  ];
  begun.abort(new Error('left'));
  waiting.abort(new Error('left'));
  expect(await Promise.allSettled(asked.slice(0, 2))).toMatchObject([
    { reason: { message: 'left' } },
    { reason: { message: 'left' } },
  ]);
  await sleep(10);
  expect(order).toEqual([]);
  ended.resolve();
  await asked[2];
  expect(order).toEqual(['next']);
  await expect(turns.run('a', work(order, 'never'), begun.signal)).rejects.toThrow('left');
  expect(order).toEqual(['next']);
});

test('rests after each work, by the time that it took', async () => {
  const order: string[] = [];
  const rest = vi.fn(async () => void order.push('rest'));
  const turns = new FairTurns(rest);
  await Promise.all(['a1', 'a2'].map((name) => turns.run('a', work(order, name))));
  expect(order.slice(0, 3)).toEqual(['a1', 'rest', 'a2']);
  expect(rest.mock.calls.flat()[0]).toBeGreaterThanOrEqual(1);
});
