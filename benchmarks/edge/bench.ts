import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { at } from '../../lib/at.ts';
import { startEdge } from '../../tests/edge/edge.ts';
import { BOX_KEY } from '../../tests/edge/upstream.ts';
import { bundle, runWorkers } from '../../tests/edge/workerd.ts';
import { quantile, type Report } from '../report.ts';
import { PASS_THROUGH } from './pass-through.ts';

const WARM_UP = 200;
const CASES = [
  { name: '1 KiB, 1 task', characters: 1_024, tasks: 1 },
  { name: '1 KiB, 16 tasks', characters: 1_024, tasks: 16 },
  { name: '64 KiB, 16 tasks', characters: 65_536, tasks: 16 },
];

interface Route {
  url: string;
  key: string;
}

/**
 * Measures the time that an edge in workerd adds to a request, compared with a Worker that only forwards it.
 * The routes take turns, one request at a time, which exposes all to the same state of the machine. Each round starts
 * with another route, and every other round runs backwards, so each route follows every other one equally often. The
 * first argument is the number of rounds (default 1,000).
 */
export async function run(report: Report, [rounds = '1000']: readonly string[]): Promise<void> {
  const upstream = spawn(process.execPath, [fileURLToPath(new URL('upstream-process.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await firstLine(upstream);
  const keys = { [BOX_KEY]: {}, limited: { requestsPerMinute: 1e9 } };
  const edge = await startEdge(await bundle(), [{ name: 'npu-1', url }], { keys });
  const worker = await runWorkers([{ name: 'pass-through', script: PASS_THROUGH, bindings: { BOX: url } }]);
  const routes: Record<string, Route> = {
    direct: { url, key: BOX_KEY },
    'pass-through': { url: at(worker.urls, 0), key: BOX_KEY },
    edge: { url: at(edge.urls, 0), key: BOX_KEY },
    'edge, key with a quota': { url: at(edge.urls, 0), key: 'limited' },
  };
  try {
    for (const { name, characters, tasks } of CASES) {
      reportTimes(report, name, await measure(routes, body(characters, tasks), Number(rounds)));
    }
  } finally {
    await Promise.all([edge.close(), worker.close()]);
    upstream.kill();
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
  return line;
}

function body(characters: number, tasks: number): string {
  return JSON.stringify({
    model: 'assay/starter',
    context: 'The parcel came two weeks late. '.repeat(characters / 32),
    tasks: Array.from({ length: tasks }, (_, i) => ({
      type: 'decide',
      name: `q${i}`,
      question: `Is statement ${i} true?`,
      options: ['yes', 'no'],
    })),
  });
}

/** Measures the routes in turn. Returns the times of the requests of each route in milliseconds, sorted. */
async function measure(routes: Record<string, Route>, text: string, rounds: number): Promise<Map<string, number[]>> {
  const times = new Map(Object.keys(routes).map((route) => [route, [] as number[]]));
  for (let i = 0; i < WARM_UP + rounds; i++) {
    for (const [route, { url, key }] of turn(Object.entries(routes), i)) {
      const ms = await ask(url, key, text);
      if (i >= WARM_UP) times.get(route)!.push(ms);
    }
  }
  for (const all of times.values()) all.sort((one, other) => one - other);
  return times;
}

function turn<T>(all: readonly T[], round: number): T[] {
  const first = (round >> 1) % all.length;
  const turned = [...all.slice(first), ...all.slice(0, first)];
  return round % 2 === 0 ? turned : turned.reverse();
}

function reportTimes(report: Report, name: string, times: ReadonlyMap<string, readonly number[]>): void {
  const middle = (route: string) => quantile(times.get(route)!, 0.5);
  const direct = middle('direct');
  const passed = middle('pass-through');
  for (const [system, all] of times) {
    const figure = { system, case: name };
    report({ ...figure, metric: 'median', value: middle(system), unit: 'ms' });
    report({ ...figure, metric: 'p99', value: quantile(all, 0.99), unit: 'ms' });
    if (system === 'direct') continue;
    report({ ...figure, metric: 'median / passed', value: middle(system) / passed, unit: 'x' });
    report({ ...figure, metric: 'added / passed', value: (middle(system) - direct) / (passed - direct), unit: 'x' });
  }
}

async function ask(url: string, key: string, text: string): Promise<number> {
  const begin = performance.now();
  const response = await fetch(`${url}/v1/tasks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: text,
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`status ${response.status}`);
  return performance.now() - begin;
}
