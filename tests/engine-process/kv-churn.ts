import { setImmediate } from 'node:timers/promises';
import { KvCache } from '../../runtime/engine/cache/kv-cache.ts';
import type { Sequence } from '../../runtime/engine/cache/sequence.ts';
import { Random } from '../../runtime/engine/random.ts';

/*
 * Acquires and releases sequences of many lengths, as an hour of requests does, and prints the bytes by which the
 * process grew beyond its buffers. `kv-memory.long.test.ts` starts it as the server starts the engine process.
 */

/** The shape of the starter model. */
const SHAPE = { layers: Array.from({ length: 10 }, () => ({ heads: 3, headSize: 64 })) };
const KV_BYTES = 128 * 1024 * 1024;
const REQUESTS = 1500;
/** Sequences in use at a time. */
const RUNNING = 4;
const SHORTEST = 20;
const LONGEST = 3000;

const cache = new KvCache(SHAPE, KV_BYTES);
const random = new Random(1);
const running: Sequence[] = [];
const beyondBuffers = () => {
  const { rss, arrayBuffers } = process.memoryUsage();
  return rss - arrayBuffers;
};
const before = beyondBuffers();
for (let request = 0; request < REQUESTS; request++) {
  const length = Math.floor(SHORTEST + random.uniform() ** 3 * (LONGEST - SHORTEST));
  const prefix = [request, ...Array.from({ length: length - 1 }, (_, cell) => cell)];
  const acquired = cache.acquire(prefix, length);
  if (acquired) {
    const { sequence } = acquired;
    for (const token of prefix.slice(sequence.length)) sequence.append(token, sequence.length - 1);
    // The model writes all of it.
    for (const { key, value } of sequence.layers) for (const buffer of [key, value]) buffer.fill(1);
    running.push(sequence);
  }
  if (acquired && running.length < RUNNING) continue;
  const oldest = running.shift();
  if (oldest) cache.release(oldest, oldest.length);
  // Lets V8 return what its garbage collector found.
  await setImmediate();
}
console.log(beyondBuffers() - before);
