import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { createApp } from '../../handlers/app.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { openApiText } from '../../lib/openapi/document.ts';
import { EXAMPLES } from '../../lib/openapi/examples.ts';
import { OPERATIONS } from '../../lib/openapi/operations.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { scriptedHost } from '../scripted-backend/host.ts';
import type { Script } from '../scripted-backend/script.ts';
import { answerProblems, requestProblems } from './bodies.ts';

const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };

async function appWith(script: Script) {
  const keys = listedKeys([{ name: 'k', sha256: await hashSecret('k'), models: ['*'], scopes: [] }]);
  return createApp({ backend: scriptedBackend(script), host: scriptedHost(script), keys });
}

test('the committed openapi.json is what the schemas say', async () => {
  expect(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')).toBe(openApiText());
});

test('GET /openapi.json serves it, without a key', async () => {
  const response = await (await appWith({})).request('/openapi.json');
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(await response.text()).toBe(openApiText());
});

describe('every operation of the contract is there, and takes no other method', () => {
  test.each(OPERATIONS)('$method $path', async ({ method, path }) => {
    const app = await appWith({});
    const at = path.replace('{model_id}', 'assay/starter');
    const answer = await app.request(at, { method: method.toUpperCase(), headers });
    expect([404, 405]).not.toContain(answer.status);
    expect((await app.request(at, { method: 'PATCH', headers })).status).toBe(405);
  });
});

test('every route of the app is in the contract', async () => {
  const app = await appWith({});
  const known = new Set([
    ...OPERATIONS.map(({ path }) => path.replace('{model_id}', ':model_id{.+}')),
    '/openapi.json',
    '/metrics',
    '/*',
  ]);
  expect(app.routes.map(({ path }) => path).filter((path) => !known.has(path))).toEqual([]);
});

describe('the examples work, and obey the contract', () => {
  test.each(Object.entries(EXAMPLES))('%s', async (id, { request, response }) => {
    const { path } = OPERATIONS.find((operation) => operation.id === id)!;
    const { choices, usage } = response as {
      choices: [{ message: { content: string } }];
      usage: Record<string, number>;
    };
    const content = JSON.parse(choices[0].message.content);
    const answers = 'tasks' in request ? Object.values(content) : [content];
    const app = await appWith({
      tasks: {
        answers: answers.map((answer) => JSON.stringify(answer)),
        usage: { promptTokens: usage.prompt_tokens!, completionTokens: usage.completion_tokens! },
      },
    });
    const id_ = (response as { id: string }).id;
    const answer = await app.request(path, {
      method: 'POST',
      headers: { ...headers, 'x-request-id': id_ },
      body: JSON.stringify(request),
    });
    expect(await answer.json()).toEqual(response);
    expect(requestProblems('POST', path, request)).toEqual([]);
    expect(answerProblems('POST', path, 200, 'application/json', response)).toEqual([]);
  });
});
