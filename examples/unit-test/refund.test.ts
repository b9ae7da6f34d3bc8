import { createApp, hashSecret, listedKeys } from 'assay';
import { expect, test } from 'vitest';
import { keywordBackend } from '../keyword-backend.ts';
import { wantsRefund } from './refund.ts';

// Tests the whole service in a unit test: no port, no process, milliseconds.
const key = { name: 'test', sha256: await hashSecret('demo'), models: ['*'], scopes: [] };
const app = createApp({ backend: keywordBackend, keys: listedKeys([key]) });
const fetch = async (request: Request) => app.fetch(request);

test.each([
  ['It broke. I want a refund, and this time I mean refund.', true],
  ['The size is wrong; can I exchange it?', false],
])('%s', async (mail, expected) => {
  expect(await wantsRefund(mail, fetch)).toBe(expected);
});

test('what the service refuses is thrown', async () => {
  const strict = createApp({ backend: keywordBackend, keys: listedKeys([]) });
  await expect(wantsRefund('Hi', async (request) => strict.fetch(request))).rejects.toThrow(/401/);
});
