import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { createApp } from '../../handlers/app.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { answerProblems } from '../contract/bodies.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { edited, scrambled } from './mutations.ts';
import { validQuestions } from './valid-questions.ts';

/* Requests of the two decision formats with something wrong somewhere: answered or refused, as the contract says. */

const numRuns = Number(process.env.ASSAY_PROPERTY_RUNS ?? 100);
// A hang is a test that runs out of time.
vi.setConfig({ testTimeout: 60_000 + 100 * numRuns });

const keys = listedKeys([{ name: 'k', sha256: await hashSecret('k'), models: ['*'], scopes: [] }]);
const app = createApp({ backend: scriptedBackend({}), keys, apis: ['decisions'] });

/** Checks what must hold whatever was sent: no 5xx by content alone, and an answer within the contract. */
async function check(path: string, body: string | Uint8Array<ArrayBuffer>): Promise<number> {
  const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };
  const response = await app.request(path, { method: 'POST', headers, body });
  const answer = await response.json();
  expect([200, 400, 404, 413, 422], JSON.stringify(answer)).toContain(response.status);
  expect(answerProblems('POST', path, response.status, 'application/json', answer)).toEqual([]);
  return response.status;
}

test('a valid request is answered', async () => {
  await fc.assert(
    fc.asyncProperty(validQuestions, async ({ path, body }) => {
      expect(await check(path, JSON.stringify(body))).toBe(200);
    }),
    { numRuns },
  );
});

test('a valid request with edits is answered or refused', async () => {
  const sent = validQuestions.chain(({ path, body }) => edited(body).map((text) => ({ path, text })));
  await fc.assert(
    fc.asyncProperty(sent, async ({ path, text }) => void (await check(path, text))),
    { numRuns },
  );
});

test('a valid request with bytes changed is answered or refused', async () => {
  const sent = validQuestions.chain(({ path, body }) =>
    scrambled(JSON.stringify(body)).map((bytes) => ({ path, bytes })),
  );
  await fc.assert(
    fc.asyncProperty(sent, async ({ path, bytes }) => void (await check(path, bytes))),
    { numRuns },
  );
});
