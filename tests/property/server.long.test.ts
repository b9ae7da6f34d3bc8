import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type RunningServer, startServer } from '../../adapters/node/server.ts';
import { createApp } from '../../handlers/app.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { type Machine, MODEL, startMachine } from '../engine-process/machine.ts';
import { edited, scrambled } from './mutations.ts';
import { validQuestions } from './valid-questions.ts';
import { type ValidRequest, validRequest } from './valid-requests.ts';

/*
 * A running server with a real engine and a tiny model, under requests with something wrong somewhere, on the six paths
 * of the decision service and the decision formats. ASSAY_PROPERTY_RUNS=20000 sends as many.
 */

const numRuns = Number(process.env.ASSAY_PROPERTY_RUNS ?? 200);
const AT_ONCE = 8;
/** Longer than the server's own limit for an answer: what takes longer hangs. */
const LONGEST_MS = 90_000;
vi.setConfig({ testTimeout: 120_000 + 150 * numRuns, hookTimeout: 120_000 });

let machine: Machine;
let server: RunningServer;
beforeAll(async () => {
  machine = await startMachine('optimum/qwen3');
  const keys = listedKeys([{ name: 'k', sha256: await hashSecret('k'), models: ['*'], scopes: [] }]);
  const app = createApp({ backend: machine.backend, keys, apis: ['decisions'] });
  server = await startServer(app.fetch, { host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await server?.close(0);
  await machine?.close();
});

interface Sent {
  path: string;
  body: string | Uint8Array<ArrayBuffer>;
}

/** Short answers: the tiny model would fill every one to its end. */
const request = fc
  .oneof(validRequest, validQuestions)
  .map(({ path, body }): ValidRequest => ({ path, body: { ...body, model: MODEL, max_output_tokens: 8 } }));
const mutated: fc.Arbitrary<Sent> = request.chain(({ path, body }) =>
  fc
    .oneof({ weight: 3, arbitrary: edited(body) }, { weight: 1, arbitrary: scrambled(JSON.stringify(body)) })
    .map((changed) => ({ path, body: changed })),
);

async function send({ path, body }: Sent): Promise<{ status: number; text: string }> {
  const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(LONGEST_MS);
  const response = await fetch(server.url + path, { method: 'POST', headers, body, signal });
  return { status: response.status, text: await response.text() };
}

test(`${numRuns} mutated requests: no failure of the server, and no hang`, async () => {
  const seed = Number(process.env.ASSAY_PROPERTY_SEED ?? Date.now() % 2 ** 31);
  const requests = fc.sample(mutated, { seed, numRuns }).values();
  const statuses = new Map<number, number>();
  const sendAll = async () => {
    for (const sent of requests) {
      const { status, text } = await send(sent);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const shown = typeof sent.body === 'string' ? sent.body : new TextDecoder().decode(sent.body);
      expect([200, 400, 404, 413, 422], `seed ${seed}: ${sent.path} ${shown}\n${text}`).toContain(status);
      JSON.parse(text);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendAll));
  // Both answers and refusals were among them.
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 422]));
  // And the server still answers.
  const body = JSON.stringify({ model: MODEL, input: 'x', questions: [{ type: 'predicate', instructions: '?' }] });
  expect((await send({ path: '/v1/decisions', body })).status).toBe(200);
  if (process.env.ASSAY_PROPERTY_RUNS) console.log(Object.fromEntries(statuses));
});
