import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { createApp } from '../../handlers/app.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { answerProblems, requestProblems } from '../contract/bodies.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { edited, scrambled } from './mutations.ts';
import { validRequest } from './valid-requests.ts';

const numRuns = Number(process.env.ASSAY_PROPERTY_RUNS ?? 100);
// A hang is a test that runs out of time.
vi.setConfig({ testTimeout: 60_000 + 100 * numRuns });

const keys = listedKeys([{ name: 'k', sha256: await hashSecret('k'), models: ['*'], scopes: [] }]);
const app = createApp({ backend: scriptedBackend({}), keys, apis: ['decisions'] });

async function send(path: string, body: string | Uint8Array<ArrayBuffer>) {
  const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };
  const response = await app.request(path, { method: 'POST', headers, body });
  const answer = await response.json();
  return { status: response.status, answer };
}

/** Rules for any request: no 5xx because of its content, and a response that obeys the contract. */
async function check(path: string, body: string | Uint8Array<ArrayBuffer>) {
  const { status, answer } = await send(path, body);
  expect([200, 400, 422], JSON.stringify(answer)).toContain(status);
  expect(answerProblems('POST', path, status, 'application/json', answer)).toEqual([]);
  return { status, answer };
}

test('a valid request is answered, each task in the order sent', async () => {
  await fc.assert(
    fc.asyncProperty(validRequest, async ({ path, body }) => {
      expect(requestProblems('POST', path, body)).toEqual([]);
      const { status, answer } = await check(path, JSON.stringify(body));
      expect(status, JSON.stringify(answer)).toBe(200);
    }),
    { numRuns },
  );
});

test('a valid request with edits is answered or refused, as the contract says', async () => {
  const sent = validRequest.chain(({ path, body }) => edited(body).map((text) => ({ path, text })));
  await fc.assert(
    fc.asyncProperty(sent, async ({ path, text }) => {
      const { status } = await check(path, text);
      if (status !== 200) return;
      const problems = requestProblems('POST', path, JSON.parse(text));
      // The contract names `name`; its earlier name `id` is accepted instead.
      expect(
        problems.filter(
          (problem) =>
            !/must have required property 'name'|must match exactly one schema|must match a schema/.test(problem),
        ),
      ).toEqual([]);
    }),
    { numRuns },
  );
});

test('a valid request with bytes changed is answered or refused', async () => {
  const sent = validRequest.chain(({ path, body }) =>
    scrambled(JSON.stringify(body)).map((bytes) => ({ path, bytes })),
  );
  await fc.assert(
    fc.asyncProperty(sent, async ({ path, bytes }) => {
      await check(path, bytes);
    }),
    { numRuns },
  );
});
