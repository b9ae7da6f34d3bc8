import { expect, test } from 'vitest';
import type { TaskBatch } from '../lib/backend.ts';
import { CHAT_PATH, TASKS_PATH } from '../lib/contract/internal.ts';
import { hashSecret, listedKeys } from '../lib/keys.ts';
import { scriptedBackend } from '../tests/scripted-backend/backend.ts';
import { scriptedHost } from '../tests/scripted-backend/host.ts';
import { createApp } from './app.ts';

const keys = listedKeys([{ name: 'edge', sha256: await hashSecret('s'), models: ['*'], scopes: [] }]);
const box = createApp({ backend: scriptedBackend({}), host: scriptedHost({}), keys });
const edge = createApp({ backend: scriptedBackend({}), keys });

const send = (app: typeof box, path: string, body: object, secret = 's') =>
  app.request(path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const batch: TaskBatch = {
  model: 'assay/starter',
  input: { context: 'Hi' },
  media: [],
  tasks: [{ type: 'decide', name: 'a', question: 'q', options: ['x', 'y'] }],
  temperature: 0,
  maxOutputTokens: 16,
};
const chat = { messages: [], stop: [], presencePenalty: 0, frequencyPenalty: 0, format: { type: 'text' } };
const opened = { sha256: '0'.repeat(64), width: 1, height: 1 };
const image = { type: 'image', source: { type: 'url', url: '' }, param: 'images[0]', opened };
const extract = (schema: object) => ({
  type: 'extract',
  name: 'e',
  instruction: 'i',
  shape: { kind: 'schema', schema },
});

test('a box answers a batch as it is, and only to a key', async () => {
  const response = await send(box, TASKS_PATH, batch);
  expect(await response.json()).toMatchObject({ answers: [{ name: 'a' }], finishReason: 'stop' });
  expect((await send(box, TASKS_PATH, batch, 'x')).status).toBe(401);
  expect((await send(edge, TASKS_PATH, batch)).status).toBe(404);
});

test.each([
  ['0ms', 0],
  ['90000.5ms', 90_000.5],
  ['-1', Number.POSITIVE_INFINITY],
  ['soon', undefined],
])('a box keeps a model as long as its edge says: %s', async (header, ms) => {
  const backend = scriptedBackend({});
  let kept: number | undefined;
  const app = createApp({
    backend: {
      ...backend,
      runTasks(one, call) {
        kept = call.keepAliveMs;
        return backend.runTasks(one, call);
      },
    },
    host: scriptedHost({}),
    keys,
  });
  const headers = { authorization: 'Bearer s', 'content-type': 'application/json', 'assay-keep-alive': header };
  await app.request(TASKS_PATH, { method: 'POST', headers, body: JSON.stringify(batch) });
  expect(kept).toBe(ms);
});

test('a box streams the events of a chat', async () => {
  const text = await (await send(box, CHAT_PATH, chat)).text();
  const events = text.split('\n\n').filter((one) => one.startsWith('data: '));
  expect(events.map((one) => JSON.parse(one.slice(6)).type)).toEqual(expect.arrayContaining(['start', 'finish']));
});

test.each<[string, string, object, number, string]>([
  ['an unknown member', TASKS_PATH, { ...batch, x: 1 }, 400, 'unknown_field'],
  ['no tasks', TASKS_PATH, { ...batch, tasks: [] }, 400, 'invalid_value'],
  ['a file that counts as read', TASKS_PATH, { ...batch, media: [image] }, 400, 'unknown_field'],
  ['one in a message', CHAT_PATH, { ...chat, messages: [{ role: 'user', parts: [image] }] }, 400, 'unknown_field'],
  [
    'a schema that no grammar enforces',
    TASKS_PATH,
    { ...batch, tasks: [extract({ not: { type: 'string' } })] },
    400,
    'unsupported_schema',
  ],
  [
    'a tool with such a schema',
    CHAT_PATH,
    {
      ...chat,
      tools: { tools: [{ name: 't', parameters: { not: { type: 'string' } } }], choice: 'auto', parallel: true },
    },
    400,
    'unsupported_schema',
  ],
])('a box refuses %s', async (_, path, body, status, code) => {
  const response = await send(box, path, body);
  expect([response.status, (await response.json()).error.code]).toEqual([status, code]);
});
