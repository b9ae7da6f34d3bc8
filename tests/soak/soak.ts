import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Random } from '../../runtime/engine/random.ts';
import { problemsOf } from '../chaos/check-answer.ts';
import { nextOperation } from '../chaos/operations.ts';
import { STARTER } from '../chaos/request.ts';
import { mannerOf, send } from '../chaos/send.ts';
import { startTarget, type Target } from '../chaos/target.ts';
import { HubServer } from '../hub/hub-server.ts';
import { residentBytes } from '../model-server/server.ts';
import { type Beside, besideHostile } from './hostile.ts';
import { type Point, type Slope, slopeOf } from './slope.ts';

/*
 * `npm run soak [-- --minutes N --clients N --points FILE]`: a real server under steady load, and the slopes of its
 * memory, descriptors and KV cells. `--points` keeps every measurement, one JSON object a line. Ends with 1 when the
 * confidence interval of a slope is above zero: a leak, or a run too short for caches and heaps to reach their size.
 * The first fifth of the time does not count: measured, the KV reaches its bound within a minute, and V8's heap its
 * size within five.
 * With `--hostile N` instead: the times of a small request, alone and beside N callers with another key that send the
 * most expensive requests there are. Ends with 1 if its 99th percentile is more than three times that alone.
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    clients: { type: 'string', default: '8' },
    points: { type: 'string' },
    hostile: { type: 'string', default: '0' },
  },
});
const [minutes, clients, hostile] = [values.minutes, values.clients, values.hostile].map(Number) as [
  number,
  number,
  number,
];
if (!(minutes > 0 && Number.isSafeInteger(clients) && clients > 0 && Number.isSafeInteger(hostile) && hostile >= 0)) {
  console.error('--minutes and --clients are numbers above zero, such as: npm run soak -- --minutes 60 --clients 8');
  process.exit(2);
}
/** Milliseconds between two measurements. */
const EVERY_MS = 5_000;
const MIB = 1024 * 1024;
/** Bound of `--hostile`. */
const MOST_TIMES_SLOWER = 3;
const TENTHS = 10;

const base = mkdtempSync(join(tmpdir(), 'assay-soak-'));
const hub = await HubServer.start();
const target = await startTarget({ hub, base, descriptors: null, logRead: true, env: {} });
const begin = performance.now();
const end = begin + minutes * 60_000;
const points = new Map<string, Point[]>();
let requests = 0;
const problems: string[] = [];
try {
  if (hostile > 0) {
    const keys = { ordinary: target.key, hostile: target.addKey('hostile') };
    reportTimes(await besideHostile(target.url, keys, { minutes, clients: hostile }));
  } else {
    await Promise.all([measure(), ...Array.from({ length: clients }, (_, client) => ask(new Random(client)))]);
    report();
  }
} finally {
  await target.stop();
  await hub.stop();
  rmSync(base, { recursive: true, force: true });
}

async function ask(random: Random): Promise<void> {
  while (performance.now() < end) {
    const operation = nextOperation(random, STARTER, false);
    const outcome = await send(target.url, target.headers, operation, mannerOf(random));
    requests++;
    if (outcome.kind === 'broken') problems.push(`${operation.path}: ${outcome.reason}`);
    if (outcome.kind === 'answered')
      problems.push(...problemsOf(operation, outcome).map((problem) => `${operation.path}: ${problem}`));
  }
}

async function measure(): Promise<void> {
  while (performance.now() < end) {
    const seconds = (performance.now() - begin) / 1000;
    const now = await figures(target);
    if (values.points) appendFileSync(values.points, `${JSON.stringify({ seconds, requests, ...now })}\n`);
    for (const [name, value] of Object.entries(now)) {
      const list = points.get(name) ?? [];
      list.push({ seconds, value });
      points.set(name, list);
    }
    await sleep(EVERY_MS);
  }
}

async function figures({ pid, children, gauges }: Target): Promise<Record<string, number>> {
  const [engine, now] = [await children(), await gauges()];
  const open = await Promise.all([pid, ...engine].map((one) => readdir(`/proc/${one}/fd`).catch(() => [])));
  return {
    'memory of the server (MiB)': (await residentBytes(pid, { children: false })) / MIB,
    'memory of the engine process (MiB)':
      ((await residentBytes(pid)) - (await residentBytes(pid, { children: false }))) / MIB,
    'of it: JavaScript heap (MiB)': (now.get('assay_engine_memory_bytes{part="heap"}') ?? Number.NaN) / MIB,
    'of it: buffers (MiB)': (now.get('assay_engine_memory_bytes{part="buffers"}') ?? Number.NaN) / MIB,
    'descriptors of all processes': open.reduce((sum, { length }) => sum + length, 0),
    'KV cells of running requests': now.get('assay_kv_cells{state="running"}') ?? Number.NaN,
    'KV cells of cached prefixes': now.get('assay_kv_cells{state="cached"}') ?? Number.NaN,
  };
}

function report(): void {
  console.log(`${minutes} minutes, ${clients} clients, ${requests} requests, ${problems.length} of them wrong`);
  for (const problem of problems.slice(0, 10)) console.error(`  WRONG ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
  for (const [name, all] of points) {
    const counted = all.filter(({ seconds }) => seconds > minutes * 12);
    if (counted.length < 10) throw new Error('too few measurements: give --minutes at least 2');
    const slope = slopeOf(counted);
    const mean = counted.reduce((sum, { value }) => sum + value, 0) / counted.length;
    const leak = slope.low > 0;
    const course = Array.from({ length: TENTHS }, (_, tenth) => meanOf(all, tenth).toFixed(0));
    if (leak) process.exitCode = 1;
    console.log(
      `${name}: mean ${mean.toFixed(1)}, slope ${shown(slope)}${leak ? '  RISES' : ''}; tenth by tenth ${course.join(' ')}`,
    );
  }
}

function reportTimes({ alone, beside, atBegin, late, problems, hostile: answers }: Beside): void {
  const at = (times: readonly number[], share: number) =>
    times.toSorted((a, b) => a - b)[Math.floor(share * (times.length - 1))]!;
  const shownTimes = (times: readonly number[]) =>
    `${times.length} requests, median ${at(times, 0.5).toFixed(0)} ms, p99 ${at(times, 0.99).toFixed(0)} ms, longest ${at(times, 1).toFixed(0)} ms`;
  console.log(`${minutes} minutes, ${hostile} hostile callers, ${problems.length} answers wrong`);
  console.log(`alone:  ${shownTimes(alone)}\nbeside: ${shownTimes(beside)}`);
  console.log(`  of them, just after the hostile callers begin: ${shownTimes(atBegin)}`);
  const ratio = at(beside, 0.99) / at(alone, 0.99);
  console.log(`p99 ${ratio.toFixed(2)} times; the hostile key got ${JSON.stringify(Object.fromEntries(answers))}`);
  console.log(`timers of the process that measures: p99 ${at(late, 0.99).toFixed(0)} ms late`);
  for (const problem of problems.slice(0, 10)) console.error(`  WRONG ${problem}`);
  if (problems.length > 0 || ratio > MOST_TIMES_SLOWER) process.exitCode = 1;
}

/** Returns the mean over one tenth of the time; it shows whether a rise ends. */
function meanOf(all: readonly Point[], tenth: number): number {
  const within = all.filter(({ seconds }) => Math.floor((seconds / 60 / minutes) * TENTHS) === tenth);
  return within.reduce((sum, { value }) => sum + value, 0) / within.length;
}

function shown({ perHour, low, high }: Slope): string {
  return `${perHour.toFixed(1)} an hour (95%: ${low.toFixed(1)} to ${high.toFixed(1)})`;
}
