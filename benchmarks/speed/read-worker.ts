import { parentPort, workerData } from 'node:worker_threads';

// Reads a block of memory that is larger than any cache, repeatedly for `ms` milliseconds, and reports the bytes per
// second. `indexOf` with an absent byte calls the C library's memchr, which reads the block at full speed.
const { bytes, ms } = workerData as { bytes: number; ms: number };
const block = Buffer.alloc(bytes, 1);
parentPort!.once('message', () => {
  const began = performance.now();
  let passes = 0;
  while (performance.now() - began < ms) {
    if (block.indexOf(0) !== -1) throw new Error('found what is not there');
    passes++;
  }
  parentPort!.postMessage((1000 * passes * bytes) / (performance.now() - began));
});
parentPort!.postMessage('ready');
