import { Worker } from 'node:worker_threads';

/** Bytes of an input that the watch can show. */
const MOST_BYTES = 64 * 1024;
const HEAD = 2;

/**
 * Watches for an input that hangs, from a thread of its own, because a parser that hangs lets nothing else run. Prints
 * the input in base64 and ends the process with 1.
 */
export function startWatch(hangMs: number): { onInput(input: Uint8Array): void; end(): void } {
  const shared = new SharedArrayBuffer(HEAD * 4 + MOST_BYTES);
  const head = new Int32Array(shared, 0, HEAD);
  const bytes = new Uint8Array(shared, HEAD * 4);
  const worker = new Worker(
    `const { shared, hangMs } = require('node:worker_threads').workerData;
     const head = new Int32Array(shared, 0, ${HEAD});
     let last = -1;
     setInterval(() => {
       if (head[0] === last) {
         const input = Buffer.from(shared, ${HEAD * 4}, head[1]).toString('base64');
         require('node:fs').writeSync(2, 'HANGS for ' + hangMs + ' ms on the input (base64) ' + input + '\\n');
         process.kill(process.pid, 'SIGKILL');
       }
       last = head[0];
     }, hangMs);`,
    { eval: true, workerData: { shared, hangMs } },
  );
  worker.unref();
  return {
    onInput(input) {
      const shown = input.subarray(0, MOST_BYTES);
      bytes.set(shown);
      head[1] = shown.length;
      Atomics.add(head, 0, 1);
    },
    end: () => void worker.terminate(),
  };
}
