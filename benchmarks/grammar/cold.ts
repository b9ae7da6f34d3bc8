import { readFileSync, writeFileSync } from 'node:fs';
import { AssayError } from '../../lib/errors.ts';
import { compileSchema } from '../../lib/grammar/resolve/compile.ts';
import { checkAnswerSchema } from '../../lib/tasks/check-answer-schema.ts';

/*
 * Reads a JSON Schema from standard input, compiles it as the first one of this process, and prints the cost as JSON.
 * Start it with `--expose-gc --max-semi-space-size=1`, which keeps the measured memory almost free of garbage.
 */

const schema = JSON.parse(readFileSync(0, 'utf8'));
collect();
const before = { bytes: inUse(), resident: startPeak() };
const began = performance.now();
const cpu = process.threadCpuUsage();
let refused = false;
try {
  checkAnswerSchema({ schema, param: 'schema' });
} catch (error) {
  if (!(error instanceof AssayError)) throw error;
  refused = true;
}
const ms = performance.now() - began;
const { user, system } = process.threadCpuUsage(cpu);
const peak = peakKib() - before.resident;
const kept = refused ? null : compileSchema(schema, { path: 'schema' });
collect();
console.log(
  JSON.stringify({
    ms,
    cpuMs: (user + system) / 1e3,
    peakMb: peak / 2 ** 10,
    keptMb: Math.max(0, inUse() - before.bytes) / 2 ** 20,
    refused: kept === null,
  }),
);

/** Resets the peak of this process's resident memory (proc_pid_clear_refs(5)). Returns the new peak in KiB. */
function startPeak(): number {
  writeFileSync('/proc/self/clear_refs', '5');
  return peakKib();
}

/** Returns the peak of this process's resident memory since `startPeak`, in KiB. Throws on systems but Linux. */
function peakKib(): number {
  const peak = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  if (peak === undefined) throw new Error('The peak of the memory can be measured on Linux only.');
  return Number(peak);
}

function collect(): void {
  for (let i = 0; i < 2; i++) globalThis.gc?.();
}

/** Returns the bytes that the JavaScript heap and array buffers use. */
function inUse(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
