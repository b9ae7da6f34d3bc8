import { Hono } from 'hono';
import { createApp } from '../../handlers/app.ts';
import { at } from '../../lib/at.ts';
import type { BatchAnswer, InferenceBackend } from '../../lib/backend.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { memoryQuota } from '../../lib/limits/quota.ts';
import { parseModelId } from '../../lib/model-id.ts';
import { median, quantile, type Report } from '../report.ts';

/*
 * Measures the handlers alone: the guard, the key check, reading and validating the body, building the response, and
 * the quota. The baseline is a plain hono route that parses the same JSON and sends the same body. Both run in one
 * process, in turn, which exposes both to the same state of the machine.
 */

const ROUNDS = 40;
const SECRET = 'sk-assay-benchmark-benchmark-benchmark';
const CONTEXT = 'The lamp arrived broken on 3 March. I have asked twice for my 49.90 euro back. '.repeat(12);

type Fetch = (request: Request) => Response | Promise<Response>;

export async function run(report: Report): Promise<void> {
  for (const [name, tasks, requests] of [
    ['1 task', 1, 500],
    ['64 tasks', 64, 150],
  ] as const) {
    const body = JSON.stringify(requestOf(tasks));
    const assay = await assayApp(tasks);
    const answer = await (await assay(post(body))).text();
    const systems: Record<string, Fetch> = { 'bare hono': bareApp(JSON.parse(answer)), assay };
    const measured = await inTurns(systems, body, answer, requests);
    for (const [system, { totals, latencies }] of Object.entries(measured)) {
      const sorted = latencies.toSorted((one, other) => one - other);
      report({ system, case: name, metric: 'requests', value: (1e6 * requests) / median(totals), unit: '1/s' });
      report({ system, case: name, metric: 'p50', value: quantile(sorted, 0.5), unit: 'us' });
      report({ system, case: name, metric: 'p99', value: quantile(sorted, 0.99), unit: 'us' });
    }
    const [ours, bare] = [measured.assay!, measured['bare hono']!];
    const ratio = (value: number, metric: string) =>
      report({ system: 'assay / bare hono', case: name, metric, value, unit: 'x' });
    ratio(median(ours.totals.map((time, i) => time / at(bare.totals, i))), 'total time ratio');
    ratio(median(ours.latencies) / median(bare.latencies), 'p50 ratio');
  }
}

interface Measured {
  /** Total time of each round, in microseconds. */
  totals: number[];
  /** Time of each request, in microseconds. */
  latencies: number[];
}

async function inTurns(systems: Record<string, Fetch>, body: string, answer: string, requests: number) {
  const measured: Record<string, Measured> = {};
  for (const [name, fetch] of Object.entries(systems)) {
    if ((await (await fetch(post(body))).text()) !== answer) throw new Error(`${name} answers something else`);
    measured[name] = { totals: [], latencies: [] };
  }
  for (let round = -10; round < ROUNDS; round++) {
    for (const [name, fetch] of Object.entries(systems)) {
      const latencies = await timed(fetch, body, requests);
      // The first rounds let the just-in-time compiler warm up.
      if (round < 0) continue;
      measured[name]!.totals.push(latencies.reduce((sum, one) => sum + one, 0));
      measured[name]!.latencies.push(...latencies);
    }
  }
  return measured;
}

/**
 * Sends requests one after another. Returns the microseconds of each, from the request to the last byte of the answer.
 */
async function timed(fetch: Fetch, body: string, requests: number): Promise<number[]> {
  const latencies = new Array<number>(requests);
  for (let i = 0; i < requests; i++) {
    const begin = performance.now();
    await (await fetch(post(body))).arrayBuffer();
    latencies[i] = (performance.now() - begin) * 1000;
  }
  return latencies;
}

function post(body: string): Request {
  return new Request('http://127.0.0.1:8080/v1/tasks', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${SECRET}`, 'x-request-id': 'bench' },
    body,
  });
}

function bareApp(answer: object): Fetch {
  const app = new Hono();
  app.post('/v1/tasks', async (c) => {
    await c.req.json();
    return c.json(answer);
  });
  return app.fetch;
}

/** Creates the app as a server has it: with guard, key, quota and all APIs. */
async function assayApp(tasks: number): Promise<Fetch> {
  const key = {
    name: 'bench',
    sha256: await hashSecret(SECRET),
    models: ['assay/*'],
    scopes: [],
    requestsPerMinute: 1e9,
  };
  return createApp({
    backend: backendFor(tasks),
    keys: listedKeys([key]),
    quota: memoryQuota({ now: () => Date.now() }),
    guard: { loopbackOnly: true, allowOrigins: [] },
  }).fetch;
}

/**
 * Creates a backend that uses the quota and returns a fixed answer at once. The measured time is therefore that of the
 * code around the backend.
 */
function backendFor(tasks: number): InferenceBackend {
  const answer: BatchAnswer = {
    model: parseModelId('assay/starter'),
    answers: Array.from({ length: tasks }, (_, i) => ({
      name: nameOf(i),
      json: isExtract(i) ? ORDER : '{"value":"yes"}',
    })),
    finishReason: 'stop',
    usage: { promptTokens: 400, completionTokens: tasks },
  };
  return {
    listModels: async () => [],
    runTasks: async (_, call) => {
      await call.admit();
      return answer;
    },
    chat: () => {
      throw new Error('not measured here');
    },
  };
}

const ORDER = '{"order_id":"A-1042","amount":"49.90","date":null}';
const isExtract = (i: number) => i % 4 === 3;
const nameOf = (i: number) => (isExtract(i) ? `order-${i}` : `refund-${i}`);

function requestOf(count: number): object {
  const tasks = Array.from({ length: count }, (_, i) =>
    isExtract(i)
      ? { type: 'extract', name: nameOf(i), instruction: 'Extract the order.', keys: ['order_id', 'amount', 'date'] }
      : {
          type: 'decide',
          name: nameOf(i),
          question: 'Does the customer want a refund?',
          options: ['yes', 'no', 'unclear'],
        },
  );
  return { model: 'assay/starter', context: CONTEXT, tasks };
}
