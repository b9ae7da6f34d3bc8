import { readFile } from 'node:fs/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { createApp } from '../../handlers/app.ts';
import { INTERNAL_ROUTES, ROUTES } from '../../handlers/routes.ts';
import type { Batches } from '../../lib/contract/batches.ts';
import { pointerStep } from '../../lib/json/leaves.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import type { ModelHost } from '../../lib/models/host.ts';
import { openApiDocument, openApiText } from '../../lib/openapi/document.ts';
import { EXAMPLES } from '../../lib/openapi/examples.ts';
import type { Batch, FileObject } from '../../lib/schema/batches.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { scriptedHost } from '../scripted-backend/host.ts';
import type { Script } from '../scripted-backend/script.ts';
import { answerProblems, requestProblems } from './bodies.ts';

const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };

const file: FileObject = {
  ...{ id: 'file-1', object: 'file', bytes: 0, created_at: 1, filename: 'a.jsonl' },
  ...{ purpose: 'batch', status: 'processed' },
};
const batch: Batch = {
  ...{ id: 'batch_1', object: 'batch', endpoint: '/v1/tasks', input_file_id: 'file-1', completion_window: '24h' },
  ...{ status: 'validating', created_at: 1, request_counts: { total: 0, completed: 0, failed: 0 }, metadata: null },
};
const batches: Batches = {
  upload: async () => file,
  files: () => ({ data: [file], more: false }),
  file: () => file,
  content: () => new Blob([]).stream(),
  deleteFile: async () => undefined,
  create: () => batch,
  batches: () => ({ data: [batch], more: false }),
  batch: () => batch,
  cancel: () => batch,
};

async function appWith(script: Script, parts: { host?: ModelHost } = { host: scriptedHost(script) }) {
  const keys = listedKeys([{ name: 'k', sha256: await hashSecret('k'), models: ['*'], scopes: [] }]);
  return createApp({ backend: scriptedBackend(script), keys, batches, ...parts });
}

test('the committed openapi.json is what the schemas say', async () => {
  expect(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')).toBe(openApiText(ROUTES));
});

test('GET /openapi.json serves it, without a key', async () => {
  const response = await (await appWith({})).request('/openapi.json');
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(await response.text()).toBe(JSON.stringify(JSON.parse(openApiText(ROUTES))));
});

test.each([
  ['POST', '/v1/files'],
  ['GET', '/v1/files'],
  ['GET', '/v1/files/file-1'],
  ['DELETE', '/v1/files/file-1'],
  ['GET', '/v1/batches'],
  ['GET', '/v1/batches/batch_1'],
  ['POST', '/v1/batches/batch_1/cancel'],
  ['POST', '/v1/batches', { input_file_id: 'file-1', endpoint: '/v1/tasks', completion_window: '24h' }],
])('%s %s answers as the contract says', async (method, path, body = undefined) => {
  const response = await (await appWith({})).request(path, {
    ...{ method, headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  expect(response.status).toBe(200);
  const route = path.replace(/(file-|batch_)1/, '{id}');
  expect(answerProblems(method, route, 200, 'application/json', await response.json())).toEqual([]);
});

describe('every operation of the contract is there, and takes no other method', () => {
  test.each(ROUTES.filter(({ path }) => path !== '/metrics'))('$method $path', async ({ method, path }) => {
    const app = await appWith({});
    const at = path.replace('{model_id}', 'assay/starter');
    const answer = await app.request(at, { method, headers });
    expect([404, 405]).not.toContain(answer.status);
    expect((await app.request(at, { method: 'PATCH', headers })).status).toBe(405);
  });
});

test('a path is not taken for a shorter one, whichever other paths there are', async () => {
  const app = await appWith({}, {});
  const answers = ROUTES.filter(({ api }) => api === 'openai').map(async ({ path }) => {
    const answer = await app.request(path.replace('{id}', 'one'), { method: 'PATCH', headers });
    return [path, answer.headers.get('allow')];
  });
  expect(Object.fromEntries(await Promise.all(answers))).toMatchObject({
    ...{ '/v1/files': 'POST, GET, HEAD', '/v1/files/{id}': 'GET, HEAD, DELETE', '/v1/files/{id}/content': 'GET, HEAD' },
    ...{ '/v1/batches': 'POST, GET, HEAD', '/v1/batches/{id}': 'GET, HEAD', '/v1/batches/{id}/cancel': 'POST' },
  });
});

test('every route of the app is in the contract', async () => {
  const app = await appWith({});
  const paths = [...ROUTES, ...INTERNAL_ROUTES].map(({ path }) => path.replaceAll(/\{(\w+)\}/g, ':$1{.+}'));
  const known = new Set([...paths, '/*']);
  expect(app.routes.map(({ path }) => path).filter((path) => !known.has(path))).toEqual([]);
});

test.each(['/health', '/currentmodel'])('%s may be answered by a server or by an edge', async (path) => {
  const document = openApiDocument(ROUTES) as { paths: Record<string, { get: { responses: Record<string, object> } }> };
  const ajv = new Ajv2020({ strict: false }).addSchema(document, 'contract');
  const steps = ['paths', path, 'get', 'responses', '200', 'content', 'application/json', 'schema'];
  const fits = ajv.compile({
    $ref: `contract#/${steps.map((step) => encodeURIComponent(pointerStep(step))).join('/')}`,
  });
  const loaded = await (await appWith({})).request(path, { headers });
  expect(fits(await loaded.json())).toBe(true);
  const edge = { status: 'degraded', state: 'loaded', device: null, active_model: 'assay/starter', boxes: 2 };
  expect(fits(edge)).toBe(true);
  expect(fits({ active_model: 'assay/starter' })).toBe(false);
});

interface DecisionBody {
  id: string;
  choices: [{ message: { content: string } }];
  usage: { prompt_tokens: number; completion_tokens: number };
}

interface QuestionsBody {
  model: string;
  answers: Record<string, QuestionAnswer>;
  usage: { input_tokens: number; output_tokens: number };
}

interface QuestionAnswer {
  probability?: number;
  noul?: number;
  probabilities?: Record<string, number | { probability: number }>;
  data?: object;
}

/** Returns a script that answers an example with its response. */
function scriptFor(request: object, response: DecisionBody | QuestionsBody): Script {
  return 'answers' in response ? questionsScript(response) : tasksScript(request, response);
}

function questionsScript({ answers, usage }: QuestionsBody): Script {
  const all = Object.values(answers);
  const yes = ({ probability, noul }: QuestionAnswer) => probability ?? noul;
  return {
    tasks: {
      answers: all.map(({ data }) => JSON.stringify(data ?? {})),
      probabilities: all.map((answer) => {
        const p = yes(answer);
        if (p !== undefined) return [p, 1 - p];
        const each = Object.values(answer.probabilities ?? {});
        return each.map((one) => (typeof one === 'number' ? one : one.probability));
      }),
      usage: { promptTokens: usage.input_tokens, completionTokens: usage.output_tokens },
    },
  };
}

function tasksScript(request: object, { choices, usage }: DecisionBody): Script {
  const content = JSON.parse(choices[0].message.content);
  const answers = 'tasks' in request ? Object.values(content) : [content];
  return {
    tasks: {
      answers: answers.map((answer) => JSON.stringify(answer)),
      usage: { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens },
    },
  };
}

describe('the examples work, and obey the contract', () => {
  test.each(Object.entries(EXAMPLES))('%s', async (id, { request, response }) => {
    const { path } = ROUTES.find((operation) => operation.id === id)!;
    const wanted = response as DecisionBody | QuestionsBody | undefined;
    const models = [request, { model: 'assay/starter' }].map((one) => ({
      id: (one as { model: string }).model,
      status: 'active' as const,
    }));
    const app = await appWith(wanted ? scriptFor(request, wanted) : { models });
    const answer = await app.request(path, {
      method: 'POST',
      headers: { ...headers, 'x-request-id': wanted && 'id' in wanted ? wanted.id : 'example' },
      body: JSON.stringify(request),
    });
    const body = await answer.json();
    expect(answer.status, JSON.stringify(body)).toBe(200);
    if (wanted) expect(body).toEqual(wanted);
    expect(requestProblems('POST', path, request)).toEqual([]);
    expect(answerProblems('POST', path, 200, 'application/json', body)).toEqual([]);
  });
});
