import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../../lib/clock.ts';
import { readChunks } from './read-chunks.ts';

const SILENCE_MS = 1_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  return readChunks(body, { clock: systemClock, silenceMs: SILENCE_MS, signal: new AbortController().signal });
}

test('a caller that reads slowly gets every chunk', async () => {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of [1, 2, 3]) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const read: number[] = [];
  for await (const [byte] of chunksOf(body)) {
    read.push(byte!);
    await vi.advanceTimersByTimeAsync(10 * SILENCE_MS);
  }
  expect(read).toEqual([1, 2, 3]);
});

test.each([
  { slow: true, fault: { broken: false, error: { code: 'timeout', message: expect.stringContaining('too slowly') } } },
  { slow: false, fault: { broken: true, error: { code: 'backend_unreachable' } } },
])('a stream that breaks after a caller with slow=$slow', async ({ slow, fault }) => {
  const pending = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(Uint8Array.of(1)),
    pull: () => pending.promise,
  });
  const chunks = chunksOf(body);
  await chunks.next();
  if (slow) await vi.advanceTimersByTimeAsync(SILENCE_MS);
  pending.reject(new TypeError('terminated'));
  await expect(chunks.next()).rejects.toMatchObject(fault);
});

test('an upstream that stops sending has failed, and its stream is cancelled', async () => {
  const cancel = vi.fn();
  const chunks = chunksOf(new ReadableStream({ start: (to) => to.enqueue(Uint8Array.of(1)), cancel }));
  await chunks.next();
  const next = expect(chunks.next()).rejects.toMatchObject({ broken: true, error: { code: 'timeout' } });
  await vi.advanceTimersByTimeAsync(2 * SILENCE_MS);
  await next;
  expect(cancel).toHaveBeenCalled();
});
