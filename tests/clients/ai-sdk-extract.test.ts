import { experimental_extract as extract } from 'ai';
import { expect, test } from 'vitest';
import { assayExtraction } from '../../examples/ai-sdk/extraction-model.ts';
import { createApp } from '../../handlers/app.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import type { Script } from '../scripted-backend/script.ts';

/* The AI SDK validates every answer of a model object: types, decimals, dates, spans. */

async function modelWith(tasks: NonNullable<Script['tasks']>) {
  const keys = listedKeys([{ name: 'k', sha256: await hashSecret('k'), models: ['*'], scopes: [] }]);
  const app = createApp({ backend: scriptedBackend({ tasks }), keys });
  return assayExtraction({ apiKey: 'k', fetch: async (url, init) => app.request(String(url), init) });
}

const state = 'Invoice INV-7, net 30 days, total $1,080.50. 🙂 Contacts: Dana, Priya.';
const fields = {
  invoice: { type: 'text' },
  total: { type: 'number', decimals: 2, unit: 'USD' },
  due: { type: 'date' },
  at: { type: 'time' },
  when: { type: 'datetime' },
  took: { type: 'duration', unit: 'days', integer: true },
  contacts: { type: 'list', items: 'text' },
  phone: { type: 'text' },
} as const;

test('experimental_extract accepts the answers of all its field types', async () => {
  const model = await modelWith({
    answers: [
      '{"invoice":"INV-7"}',
      '{"total":1080.50}',
      '{"due":"2026-04-01"}',
      '{"at":"09:30"}',
      '{"when":"2026-04-01T09:30:00"}',
      '{"took":30}',
      '{"contacts":["Dana","Priya"]}',
      '{"phone":"7"}',
    ],
    absent: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0, 0.9],
  });
  const { answers } = await extract({ model, state, fields, referenceDate: '2026-01-01', maxRetries: 0 });
  expect(answers.invoice).toMatchObject({ value: 'INV-7', pNull: 0.1, source: { part: 0, start: 8, end: 13 } });
  expect(answers.total).toMatchObject({ value: 1080.5 });
  expect(answers.took).toMatchObject({ value: 30 });
  expect(answers.phone).toMatchObject({ value: null, guess: '7', pNull: 0.9 });
  const { items, value } = answers.contacts;
  const sources = items?.map(({ source }) => (source?.type === 'text' ? state.slice(source.start, source.end) : null));
  expect(sources).toEqual(value);
});

test('an error of the server is thrown with its message', async () => {
  const model = await modelWith({ fail: { code: 'overloaded', message: 'Too many requests.', retryAfterSeconds: 1 } });
  await expect(extract({ model, state, fields, maxRetries: 0 })).rejects.toThrow('Too many requests.');
});
