/*
 * Restarts boxes one after the other behind a real gateway, under load, and counts the requests that fail:
 *
 *   npm run rollout -- --envoy PATH [--requests 2000] [--boxes 3] [--clients 6]
 *
 * Envoy runs examples/deploy/envoy.yaml with the addresses of the boxes. Then requests of one session must reach one
 * box, and a box that is killed must fail no request. Only addresses of this machine are used.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';

const { values } = parseArgs({
  options: {
    envoy: { type: 'string', default: 'envoy' },
    requests: { type: 'string', default: '2000' },
    boxes: { type: 'string', default: '3' },
    clients: { type: 'string', default: '6' },
  },
});
const [requests, boxCount, clients] = [values.requests, values.boxes, values.clients].map(Number) as [
  number,
  number,
  number,
];
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const KEY = 'sk-assay-rollout';
const MOST_MS = 15 * 60_000;
/** As the Helm chart: longer than Envoy needs to notice. */
const SHUTDOWN_DELAY_S = 5;
const folder = mkdtempSync(join(tmpdir(), 'assay-rollout-'));
const children = new Set<ChildProcess>();

interface Box {
  port: number;
  home: string;
  process: ChildProcess;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address ? address.port : 0;
}

function start(command: string, args: string[]): ChildProcess {
  const child = spawn(command, args, {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', process.env.VERBOSE ? 'inherit' : 'ignore'],
    env: { ...process.env, ASSAY_API_KEY: KEY },
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

function startBox(port: number, home: string): ChildProcess {
  const flags = { port, home, 'shutdown-delay': SHUTDOWN_DELAY_S, 'drain-seconds': 60 };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return start(process.execPath, ['adapters/node/bin.ts', 'serve', ...args]);
}

async function until(what: string, test: () => Promise<boolean>): Promise<void> {
  for (let waited = 0; waited < 240; waited++) {
    if (await test().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  throw new Error(`${what} did not become true in two minutes.`);
}

const ready = (port: number) =>
  until(`Readiness on port ${port}`, async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok);

async function ask(gateway: number, i: number, session?: string): Promise<string | null> {
  try {
    const response = await fetch(`http://127.0.0.1:${gateway}/decide`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        ...(session === undefined ? {} : { 'x-session-id': session }),
      },
      body: JSON.stringify({
        model: 'assay/starter',
        context: `Order ${i}: the mug arrived broken.`,
        question: 'Is it damaged?',
        options: ['yes', 'no'],
      }),
      signal: AbortSignal.timeout(120_000),
    });
    const text = await response.text();
    return response.ok ? null : `${response.status} ${text.slice(0, 200)}`;
  } catch (error) {
    return String(error instanceof Error ? (error.cause ?? error) : error);
  }
}

/** Sends requests from all clients until they are answered; resolves to what went wrong. */
async function load(gateway: number, count: number, done: { answered: number }): Promise<string[]> {
  const failures: string[] = [];
  const begin = performance.now();
  let next = 0;
  const client = async () => {
    while (next < count && performance.now() - begin < MOST_MS) {
      const failure = await ask(gateway, next++);
      if (failure === null) done.answered++;
      else failures.push(failure);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return failures;
}

/** Returns how many tasks each box has answered. */
function answered(boxes: readonly Box[]): Promise<number[]> {
  return Promise.all(
    boxes.map(async ({ port }) => {
      const headers = { authorization: `Bearer ${KEY}` };
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text();
      return Number(/^assay_requests_total\{kind="tasks",outcome="ok",model="[^"]*"\} (\d+)$/m.exec(text)?.[1] ?? 0);
    }),
  );
}

function envoyConfig(gateway: number, boxes: readonly Box[]): object {
  const config = parse(readFileSync(join(ROOT, 'examples/deploy/envoy.yaml'), 'utf8'));
  const [listener] = config.static_resources.listeners;
  const [cluster] = config.static_resources.clusters;
  const at = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
  listener.address = at(gateway);
  cluster.type = 'STATIC';
  // Boxes on loopback refuse other names (DNS rebinding), and Envoy sends the name of the cluster.
  cluster.health_checks[0].http_health_check.host = '127.0.0.1';
  cluster.load_assignment.endpoints = [
    { lb_endpoints: boxes.map(({ port }) => ({ endpoint: { address: at(port) } })) },
  ];
  return config;
}

try {
  const boxes: Box[] = [];
  for (let i = 0; i < boxCount; i++) {
    const [port, home] = [await freePort(), join(folder, `box-${i}`)];
    boxes.push({ port, home, process: startBox(port, home) });
  }
  for (const { port } of boxes) await ready(port);
  const gateway = await freePort();
  const file = join(folder, 'envoy.json');
  writeFileSync(file, JSON.stringify(envoyConfig(gateway, boxes)));
  start(values.envoy, ['-c', file, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'warn']);
  await ready(gateway);

  const before = await answered(boxes);
  for (let i = 0; i < 30; i++) {
    const failure = await ask(gateway, i, `case ${i % 3}`);
    if (failure !== null) throw new Error(`A request of a session failed: ${failure}`);
  }
  const after = await answered(boxes);
  const each = after.map((count, i) => count - (before[i] ?? 0));
  console.log(`30 requests of 3 sessions, 10 each, reached the boxes: ${each.join(', ')}`);
  if (each.some((count) => count % 10 !== 0)) throw new Error('A session was spread over boxes.');
  if (each.reduce((sum, count) => sum + count, 0) !== 30) throw new Error('The boxes have not counted all requests.');

  const done = { answered: 0 };
  const loading = load(gateway, requests, done);
  let ended = false;
  void loading.finally(() => {
    ended = true;
  });
  for (const [i, box] of boxes.entries()) {
    await until(
      'The next part of the load',
      async () => ended || done.answered >= ((i + 0.5) * requests) / (boxCount + 1),
    );
    const begin = performance.now();
    box.process.kill('SIGTERM');
    await once(box.process, 'exit');
    const stopped = performance.now();
    box.process = startBox(box.port, box.home);
    await ready(box.port);
    const [stop, again] = [stopped - begin, performance.now() - stopped].map((ms) => (ms / 1000).toFixed(1));
    console.log(
      `box ${i}: stopped in ${stop} s, ready again after ${again} s, at request ${done.answered}; load ended: ${ended}`,
    );
  }
  const failures = await loading;
  console.log(
    `Rolling restart of ${boxCount} boxes: ${failures.length} of ${requests} requests failed, ${done.answered} answered.`,
  );
  for (const failure of failures.slice(0, 10)) console.log(`  ${failure}`);

  const killing = load(gateway, Math.ceil(requests / 10), { answered: 0 });
  await new Promise((resolve) => setTimeout(resolve, 1000));
  boxes[0]?.process.kill('SIGKILL');
  const lost = await killing;
  console.log(`A box killed under load: ${lost.length} of ${Math.ceil(requests / 10)} requests failed.`);
  for (const failure of lost.slice(0, 10)) console.log(`  ${failure}`);
  if (failures.length + lost.length > 0 || done.answered < requests) process.exitCode = 1;
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}
