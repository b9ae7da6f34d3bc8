import { expect, test } from 'vitest';
import { mapInOrder } from './map-in-order.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** Lets everything else run `count` times. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setTimeout(resolve));
}

test.each([
  [1, 1],
  [1, 4],
  [3, 3],
  [4, 16],
  [50, 50],
])('yields in order, with %i at once and a window of %i', async (inflight, window) => {
  let running = 0;
  let most = 0;
  const work = async (n: number) => {
    most = Math.max(most, ++running);
    await turns(1 + ((n * 7) % 3));
    running--;
    return n * n;
  };
  expect(await all(mapInOrder(numbers(40), { inflight, window }, work))).toEqual(numbers(40).map((n) => n * n));
  expect(most).toBeLessThanOrEqual(inflight);
  expect(most).toBe(Math.min(inflight, window, 40));
});

test('begins items behind a slow one, as far as the window allows', async () => {
  const begun: number[] = [];
  let release = () => {};
  const slow = new Promise<void>((resolve) => {
    release = resolve;
  });
  const results = all(
    mapInOrder(numbers(20), { inflight: 2, window: 6 }, async (n) => {
      begun.push(n);
      if (n === 0) await slow;
      return n;
    }),
  );
  await turns(20);
  expect(begun).toEqual(numbers(6));
  release();
  expect(await results).toEqual(numbers(20));
});

test('yields what came before a failure, throws it in its turn, and begins nothing after it', async () => {
  const begun: number[] = [];
  const found: number[] = [];
  const results = mapInOrder(numbers(100), { inflight: 4, window: 8 }, async (n) => {
    begun.push(n);
    await turns(n === 2 ? 1 : 3);
    if (n === 2) throw new Error('two');
    return n;
  });
  await expect(
    (async () => {
      for await (const one of results) found.push(one);
    })(),
  ).rejects.toThrow('two');
  expect(found).toEqual([0, 1]);
  expect(begun.length).toBeLessThan(10);
});

test('closes its source when the caller ends early, and passes on its failure', async () => {
  let closed = false;
  async function* source() {
    try {
      for (const n of numbers(10)) yield n;
    } finally {
      closed = true;
    }
  }
  for await (const _ of mapInOrder(source(), { inflight: 2, window: 2 }, async (n) => n)) break;
  expect(closed).toBe(true);
  async function* broken() {
    yield 1;
    throw new Error('unreadable');
  }
  await expect(all(mapInOrder(broken(), { inflight: 1, window: 1 }, async (n) => n))).rejects.toThrow('unreadable');
});
