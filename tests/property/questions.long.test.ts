import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { createApp } from '../../handlers/app.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { answerProblems } from '../contract/bodies.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { edited, scrambled } from './mutations.ts';

/* Requests of the two decision formats with something wrong somewhere: answered or refused, as the contract says. */

const numRuns = Number(process.env.ASSAY_PROPERTY_RUNS ?? 200);
// A hang is a test that runs out of time.
vi.setConfig({ testTimeout: 60_000 + 100 * numRuns });

const keys = listedKeys([{ name: 'k', sha256: await hashSecret('k'), models: ['*'], scopes: [] }]);
const app = createApp({ backend: scriptedBackend({}), keys, apis: ['decisions'] });

const model = 'assay/starter';
const some = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const json = fc.oneof(some, fc.dictionary(some, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }));
const distinct = (least: number) => fc.uniqueArray(some, { minLength: least, maxLength: 4 });
const extract = fc.oneof(
  fc.record({ keys: distinct(1) }),
  fc.constant({ schema: { vendor: 'string', lines: [{ qty: 'integer' }] } }),
);

const part = fc.oneof(
  some.map((text) => ({ type: 'input_text', text })),
  fc.constant({ type: 'input_json', data: { a: [1, null, 'x'] } }),
  fc.constant({ type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' }),
);
const content = fc.oneof(some, fc.array(part, { minLength: 1, maxLength: 3 }));
const message = fc.record({ role: fc.constantFrom('user', 'developer', 'system', 'assistant'), content });
const asked = { instructions: content };
const question = fc.oneof(
  fc.record({ type: fc.constant('predicate'), ...asked }),
  fc.record({
    type: fc.constant('choice'),
    ...asked,
    choices: distinct(1).map((values) => [{ value: true }, ...values.map((value) => ({ value, description: 'd' }))]),
  }),
  fc.record({
    type: fc.constant('score'),
    ...asked,
    levels: distinct(2).map((list) => list.map((label) => ({ label }))),
  }),
  fc.tuple(extract, content).map(([shape, instructions]) => ({ type: 'extract', instructions, ...shape })),
);
const decisions = fc.record({
  model: fc.constant(model),
  input: fc.oneof(some, fc.array(message, { minLength: 1, maxLength: 3 })),
  questions: fc.array(question, { minLength: 1, maxLength: 3 }),
  orders: fc.integer({ min: 1, max: 8 }),
  abstain_below: fc.double({ min: 0, max: 1, noNaN: true }),
});

const named = fc.oneof(
  fc.record({ type: fc.constant('noul'), instructions: json, criteria: fc.record({ true: json, false: json }) }),
  fc.record({
    type: fc.constant('choice'),
    instructions: json,
    criteria: fc.oneof(distinct(1), fc.dictionary(some, fc.oneof(json, fc.constant(null)), { minKeys: 1, maxKeys: 4 })),
  }),
  fc.record({ type: fc.constant('score'), instructions: json, criteria: distinct(1) }),
  extract.map((shape) => ({ type: 'extract', ...shape })),
);
const systemOne = fc.record({
  model: fc.constant(model),
  state: json,
  questions: fc.dictionary(fc.oneof(some, fc.constantFrom('__proto__', '10', 'constructor')), named, {
    minKeys: 1,
    maxKeys: 3,
  }),
  confidence: fc.constantFrom('entropy', 'margin'),
});

const valid = fc.oneof(
  decisions.map((body) => ({ path: '/v1/decisions', body })),
  systemOne.map((body) => ({ path: '/v1/systemone', body })),
);

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
    fc.asyncProperty(valid, async ({ path, body }) => {
      expect(await check(path, JSON.stringify(body))).toBe(200);
    }),
    { numRuns },
  );
});

test('a valid request with edits is answered or refused', async () => {
  const sent = valid.chain(({ path, body }) => edited(body).map((text) => ({ path, text })));
  await fc.assert(
    fc.asyncProperty(sent, async ({ path, text }) => void (await check(path, text))),
    { numRuns },
  );
});

test('a valid request with bytes changed is answered or refused', async () => {
  const sent = valid.chain(({ path, body }) => scrambled(JSON.stringify(body)).map((bytes) => ({ path, bytes })));
  await fc.assert(
    fc.asyncProperty(sent, async ({ path, bytes }) => void (await check(path, bytes))),
    { numRuns },
  );
});
