import { resolve, sep } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createApp } from '../../handlers/app.ts';
import { asModelId, MODEL_ID_PATTERN } from '../../lib/model-id.ts';
import { eventsOf } from '../conformance/send.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { scriptedHost } from '../scripted-backend/host.ts';
import type { ChatStep, Recorded, Script } from '../scripted-backend/script.ts';
import { edited } from './mutations.ts';

const numRuns = Number(process.env.ASSAY_PROPERTY_RUNS ?? 150);

function appOf(script: Script = {}) {
  const recorded: Recorded[] = [];
  const backend = scriptedBackend(script, recorded);
  return { app: createApp({ backend, host: scriptedHost(script, recorded), apis: ['models'] }), recorded };
}

const post = (path: string, body: BodyInit, accept = '*/*') =>
  new Request(`http://localhost${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept },
    body,
  });

/** No 5xx because of the content; an error has its body; every response ends. */
async function answersInOrder(request: Request, script: Script = {}): Promise<void> {
  const response = await appOf(script).app.fetch(request);
  const text = await response.text();
  expect(response.status, text).toBeLessThan(500);
  expect(response.headers.get('x-request-id')).toBeTruthy();
  if (response.status === 200) return;
  const { error } = JSON.parse(text);
  expect(error).toMatchObject({ type: expect.any(String), code: expect.any(String), message: expect.any(String) });
}

describe('model ids', () => {
  const part = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/);
  const nearly = fc.stringMatching(/^[A-Za-z0-9._\-/\\%]{0,12}\/?[A-Za-z0-9._\-/\\%]{0,12}$/);

  test('any text: an accepted id names a folder two levels below, whatever the system', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 250 }), nearly, fc.webPath()), (text) => {
        const id = asModelId(text);
        fc.pre(id !== null);
        const root = resolve('/models');
        expect(resolve(root, id!).split(sep)).toHaveLength(root.split(sep).length + 2);
        expect(resolve(root, id!).startsWith(root + sep)).toBe(true);
        expect(encodeURI(id!)).toBe(id);
      }),
      { numRuns, maxSkipsPerRun: 1000 },
    );
  });

  test('two good parts make an id, unless they hold ".."', () => {
    fc.assert(
      fc.property(part, part, (namespace, name) => {
        const text = `${namespace}/${name}`;
        expect(asModelId(text)).toBe(text.includes('..') ? null : text);
        expect(new RegExp(MODEL_ID_PATTERN).test(text)).toBe(!text.includes('..'));
      }),
      { numRuns },
    );
  });

  test('DELETE with any path: 400, or exactly the id that was meant', async () => {
    const segment = fc.oneof(
      part,
      nearly,
      fc.string({ unit: 'binary', maxLength: 20 }).filter((text) => text.isWellFormed()),
    );
    await fc.assert(
      fc.asyncProperty(segment, segment, fc.boolean(), async (namespace, name, encoded) => {
        const slash = encoded ? '%2F' : '/';
        const path = `/v1/models/${encodeURIComponent(namespace)}${slash}${encodeURIComponent(name)}`;
        const { app, recorded } = appOf();
        const response = await app.fetch(new Request(`http://localhost${path}`, { method: 'DELETE' }));
        if (response.status === 200) {
          expect(recorded).toMatchObject([{ call: 'remove', model: `${namespace}/${name}` }]);
          expect(asModelId(`${namespace}/${name}`)).not.toBeNull();
        } else {
          // A browser's URL removes `.` and `..` before anything is sent, so another route may be meant.
          expect([400, 404, 405]).toContain(response.status);
          expect(recorded).toEqual([]);
        }
      }),
      { numRuns },
    );
  });
});

describe('bad input', () => {
  const chat = {
    model: 'assay/starter',
    messages: [
      { role: 'system', content: 'S' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: { url: 'https://x.test/' } },
        ],
      },
      { role: 'assistant', content: 'A', name: 'me' },
    ],
    max_tokens: 5,
    temperature: 0.5,
    top_p: 0.9,
    seed: 1,
    stop: ['a'],
    logprobs: true,
    top_logprobs: 2,
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'x', schema: { type: 'object', properties: { a: { type: 'string' } } } },
    },
    stream_options: { include_usage: true },
    tools: [],
    n: 1,
  };
  const download = { model: 'assay/starter', max_prompt_len: 64, allow_download: true };

  test.each([
    ['/v1/chat/completions', chat],
    ['/v1/chat/completions', { ...chat, stream: true }],
    ['/download', download],
    ['/v1/models/load', { model: 'assay/starter', max_prompt_len: 64 }],
    ['/delete', { model: 'assay/starter', compiled_only: true }],
  ])('a valid request to %s, with edits', async (path, valid) => {
    await fc.assert(
      fc.asyncProperty(edited(valid), (text) => answersInOrder(post(path, text))),
      { numRuns },
    );
  });

  test.each(['/v1/chat/completions', '/load', '/download', '/delete', '/unload'])('any bytes to %s', async (path) => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.json().map((text) => new TextEncoder().encode(text)),
    );
    await fc.assert(
      fc.asyncProperty(bytes, (body) => answersInOrder(post(path, new Uint8Array(body)))),
      { numRuns },
    );
  });

  test('any path, method and headers', async () => {
    const header = fc.stringMatching(/^[\x20-\x7e]{0,40}$/);
    const method = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD');
    await fc.assert(
      fc.asyncProperty(fc.webPath(), method, header, header, async (path, method, type, authorization) => {
        const headers = { 'content-type': type, authorization, 'x-request-id': type };
        const response = await appOf().app.fetch(new Request(`http://localhost${path || '/'}`, { method, headers }));
        expect(response.status).toBeLessThan(500);
      }),
      { numRuns },
    );
  });
});

test('a stream gives back exactly the texts of the backend, in order, reasoning before content', async () => {
  const texts = fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(texts, texts, async (reasoning, content) => {
      const usage = { promptTokens: 1, completionTokens: 1 };
      const chat = [
        { event: { type: 'start', model: 'assay/starter' } },
        ...reasoning.map((text) => ({ event: { type: 'reasoning', text } })),
        ...content.map((text) => ({ event: { type: 'content', text } })),
        { event: { type: 'finish', reason: 'stop', usage, metrics: {} } },
      ] as ChatStep[];
      const body = JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], stream: true });
      const response = await appOf({ chat }).app.fetch(post('/v1/chat/completions', body));
      const events = eventsOf(await response.text());
      expect(events.pop()).toBe('[DONE]');
      const deltas = (events as { choices: [{ delta: object }] }[]).map(({ choices }) => choices[0].delta);
      expect(deltas).toEqual([
        { role: 'assistant' },
        ...reasoning.map((text) => ({ reasoning_content: text })),
        ...content.map((text) => ({ content: text })),
        {},
      ]);
    }),
    { numRuns },
  );
});
