import { expect, test, vi } from 'vitest';
import type { BatchAnswer, Call, InferenceBackend, Priority, TaskBatch } from '../lib/backend.ts';
import type { Batches } from '../lib/contract/batches.ts';
import { AssayError } from '../lib/errors.ts';
import { hashSecret, listedKeys, type StoredKey } from '../lib/keys.ts';
import { memoryQuota } from '../lib/limits/quota.ts';
import { parseModelId } from '../lib/model-id.ts';
import type { ModelHost } from '../lib/models/host.ts';
import type { FileObject } from '../lib/schema/batches.ts';
import { createApp } from './app.ts';
import type { AppDeps, BodyChecker, RequestRecord } from './context.ts';
import { readBodyOf } from './routes.ts';

const ANSWER: BatchAnswer = {
  model: parseModelId('assay/starter'),
  answers: [{ name: 'a', json: '{"value":"yes"}' }],
  finishReason: 'stop',
  usage: { promptTokens: 1, completionTokens: 1 },
};
const KEY: StoredKey = { name: 'ann', sha256: await hashSecret('s'), models: ['*'], scopes: [] };

type RunTasks = InferenceBackend['runTasks'];
const admitting: RunTasks = async (_, call) => {
  await call.admit();
  return ANSWER;
};

function appOf(runTasks: RunTasks, deps: Partial<AppDeps> = {}) {
  const backend: InferenceBackend = { runTasks, listModels: async () => [], chat: async function* () {} };
  const app = createApp({ backend, keys: listedKeys([KEY]), ...deps });
  return (init: RequestInit = {}) =>
    app.request('/v1/tasks', {
      method: 'POST',
      headers: { authorization: 'Bearer s', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', context: '', tasks: [{ type: 'decide', name: 'a', question: 'q' }] }),
      ...init,
    });
}

test('an error that is not an AssayError becomes an internal_error without details', async () => {
  const records: RequestRecord[] = [];
  const fails: RunTasks = async () => {
    throw new TypeError('/home/ann/secret.ts is undefined');
  };
  const response = await appOf(fails, { log: (record) => records.push(record) })();
  expect(response.status).toBe(500);
  const text = await response.text();
  expect(JSON.parse(text)).toMatchObject({ error: { type: 'server_error', code: 'internal_error' } });
  expect(text).not.toMatch(/secret|TypeError/);
  expect(records).toMatchObject([{ status: 500, error: expect.any(Error) }]);
});

test('HEAD ends the body that GET would have had', async () => {
  const cancel = vi.fn();
  const file = { bytes: 5 } as FileObject;
  const batches = { file: () => file, content: () => new ReadableStream({ cancel }) } as Partial<Batches> as Batches;
  const app = createApp({ backend: {} as InferenceBackend, host: {} as ModelHost, keys: listedKeys([KEY]), batches });
  const headers = { authorization: 'Bearer s' };
  const response = await app.request('/v1/files/file-1/content', { method: 'HEAD', headers });
  expect(response.status).toBe(200);
  expect(cancel).toHaveBeenCalledOnce();
});

test('large bodies share a budget, small ones are always accepted', async () => {
  const { promise: began, resolve: begin } = Promise.withResolvers<void>();
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const send = appOf(
    async (_, call) => {
      begin();
      await answered;
      return admitting(_, call);
    },
    { bodyBytes: 100 * 1024 },
  );
  const sized = (kib: number) => ({
    body: JSON.stringify({
      model: 'm',
      context: ' '.repeat(kib * 1024),
      tasks: [{ type: 'decide', name: 'a', question: 'q' }],
    }),
  });
  const first = send(sized(150));
  // Keys are hashed on other threads, so a second request could overtake the first.
  await began;
  const refused = await send(sized(150));
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
  expect(await refused.json()).toMatchObject({ error: { code: 'overloaded' } });
  const small = send(sized(10));
  answer();
  expect((await first).status).toBe(200);
  expect((await small).status).toBe(200);
  expect((await send(sized(150))).status).toBe(200);
});

test('a key that is revoked is refused at once', async () => {
  const keys = [KEY];
  const send = appOf(admitting, { keys: { find: async (sha256) => listedKeys(keys).find(sha256) } });
  expect((await send()).status).toBe(200);
  keys.pop();
  expect((await send()).status).toBe(401);
  keys.push(KEY);
  expect((await send()).status).toBe(200);
});

test('without a key store every call is refused', async () => {
  const backend: InferenceBackend = { runTasks: admitting, listModels: async () => [], chat: async function* () {} };
  const response = await createApp({ backend }).request('/v1/tasks', {
    method: 'POST',
    headers: { authorization: 'Bearer s' },
  });
  expect(response.status).toBe(401);
});

test('a key over its requests per minute is told the exact seconds to wait', async () => {
  let now = 0;
  const limited = listedKeys([{ ...KEY, requestsPerMinute: 2 }]);
  const send = appOf(admitting, { keys: limited, quota: memoryQuota({ now: () => now }) });
  const statuses = [await send(), await send(), await send()];
  expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect(statuses[2]!.headers.get('retry-after')).toBe('30');
  now = 29_000;
  expect((await send()).headers.get('retry-after')).toBe('1');
  now = 30_000;
  expect((await send()).status).toBe(200);
});

test('a key has limits for some models, which count what they answer, but not what they were too busy for', async () => {
  const key = listedKeys([{ ...KEY, limits: [{ models: 'a/*', requestsPerMinute: 2, tokensPerMinute: 100 }] }]);
  let turn: (call: Call) => Promise<void> = async () => undefined;
  const send = appOf(
    async (batch, call) => {
      await turn(call);
      return admitting(batch, { ...call, admit: async () => undefined });
    },
    { keys: key, quota: memoryQuota({ now: () => 0 }) },
  );
  const statuses: number[] = [];
  const ask = async (what: typeof turn) => {
    turn = what;
    statuses.push((await send()).status);
  };
  await ask((call) => call.admit(40, 'a/b'));
  await ask((call) => call.admit(1_000, 'other/b'));
  await ask(async (call) => {
    await call.admit(50, 'a/c');
    await call.recount?.(0);
    throw new AssayError('overloaded', 'busy', { retryAfterSeconds: 1 });
  });
  await ask(async (call) => {
    await call.admit(10, 'a/c');
    await call.recount?.(60);
  });
  await ask((call) => call.admit(1, 'a/b'));
  expect(statuses).toEqual([200, 200, 429, 200, 429]);
});

test.each<[Priority | undefined, string | undefined, number, Priority | undefined | null]>([
  [undefined, undefined, 200, undefined],
  [undefined, 'interactive', 200, 'interactive'],
  [undefined, 'batch', 200, 'batch'],
  [undefined, 'urgent', 422, null],
  ['interactive', undefined, 200, 'interactive'],
  ['interactive', 'interactive', 200, 'interactive'],
  ['interactive', 'batch', 200, 'batch'],
  ['batch', undefined, 200, 'batch'],
  ['batch', 'batch', 200, 'batch'],
  ['batch', 'interactive', 422, null],
  ['batch', 'urgent', 422, null],
])('a key of priority %s and a header of %s: %i (D-34)', async (ofKey, header, status, priority) => {
  let seen: string | null | undefined = null;
  const send = appOf(
    async (batch, call) => {
      seen = call.priority;
      return admitting(batch, call);
    },
    { keys: listedKeys([{ ...KEY, ...(ofKey ? { priority: ofKey } : {}) }]) },
  );
  const headers = { authorization: 'Bearer s', 'content-type': 'application/json' };
  const response = await send({ headers: header === undefined ? headers : { ...headers, 'assay-priority': header } });
  expect([response.status, seen]).toEqual([status, priority]);
  if (status === 422) {
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_value', param: 'assay-priority' } });
  }
});

test.each([
  ['ann', {}, {}, 'key ann', 'ann'],
  ['bob', {}, {}, 'key bob', 'bob'],
  ['ann', {}, { 'assay-cache-scope': 'key bob', 'assay-caller': 'bob' }, 'key ann/key bob', 'ann'],
  ['ann', { sharesCache: true }, {}, 'shared', 'ann'],
  [
    'box',
    { scopes: ['admin'] },
    { 'assay-cache-scope': 'key eve', 'assay-caller': 'eve' },
    'key box/key eve',
    'box/eve',
  ],
] as const)('cached prompts belong to the key %s %j with the headers %j', async (name, own, named, scope, caller) => {
  let seen: Partial<Call> = {};
  const send = appOf(
    async (batch, call) => {
      seen = call;
      return admitting(batch, call);
    },
    { keys: listedKeys([{ ...KEY, name, ...own }]) },
  );
  await send({ headers: { authorization: 'Bearer s', 'content-type': 'application/json', ...named } });
  expect([seen.cacheScope, seen.caller]).toEqual([scope, caller]);
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

test('a trace is continued: in the log, and in the call to the backend', async () => {
  const records: RequestRecord[] = [];
  const traces: unknown[] = [];
  const traced: RunTasks = async (batch, call) => {
    traces.push(call.trace);
    return admitting(batch, call);
  };
  const ask = appOf(traced, { log: (record) => records.push(record), newSpanId: () => '00f067aa0ba902b7' });
  const headers = { authorization: 'Bearer s', 'content-type': 'application/json' };
  await ask({ headers: { ...headers, traceparent: `00-${TRACE}-${PARENT}-01` } });
  await ask({ headers: { ...headers, traceparent: 'nonsense' } });
  const trace = { traceId: TRACE, spanId: '00f067aa0ba902b7', parentId: PARENT };
  expect(traces).toEqual([{ ...trace, flags: '01' }, undefined]);
  expect(records[0]).toMatchObject(trace);
  expect(records[1]).not.toHaveProperty('traceId');
});

const object = (pattern: string) => ({ type: 'object', properties: { v: { type: 'string', pattern } } });
/** Takes more steps to compile than the thread that serves requests may spend. */
const LONG = '^(a|b)*a(a|b){9}$';
const bodies = (pattern: string): [path: string, body: object][] => {
  const schema = object(pattern);
  const asked = { type: 'extract', name: 't', instructions: 'x', schema };
  const task = { type: 'extract', name: 't', instruction: 'x', schema };
  const messages = [{ role: 'user', content: 'x' }];
  const questions = { a: { type: 'extract', schema } };
  return [
    ['/v1/tasks', { model: 'm', context: 'x', tasks: [task] }],
    ['/extract', { model: 'm', context: 'x', instruction: 'x', schema }],
    ['/v1/decisions', { model: 'm', input: 'x', questions: [asked] }],
    ['/v1/systemone', { state: 'x', questions }],
    ['/v1/systemone/batch', { states: ['x'], questions }],
    ['/v1/extractions', { state: 'x', questions }],
    [
      '/v1/chat/completions',
      { messages, response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } },
    ],
    ['/v1/chat/completions', { messages, tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] }],
    ['/v1/responses', { input: 'x', text: { format: { type: 'json_schema', name: 'a', schema } } }],
  ];
};

test.each(bodies(LONG))('%s: a schema that takes long to compile is for the checker', async (path, body) => {
  const checked: object[] = [];
  const check: BodyChecker['check'] = async (sent, caller) => {
    checked.push({ ...sent, caller });
    throw new AssayError('unsupported_schema', 'Use another one.');
  };
  const backend: InferenceBackend = { runTasks: admitting, listModels: async () => [], chat: async function* () {} };
  const app = createApp({ backend, keys: listedKeys([KEY]), checker: { check } });
  const headers = { authorization: 'Bearer s', 'content-type': 'application/json' };
  const text = JSON.stringify(body);
  const response = await app.request(path, { method: 'POST', headers, body: text });
  expect(await response.text()).toContain('Use another one.');
  expect(checked).toEqual([{ path, text, caller: path.includes('chat') || path.includes('responses') ? '' : 'ann' }]);
  expect(() => readBodyOf(path, text)).not.toThrow();
});

test.each(bodies('^a+$'))('%s: other schemas are compiled at once', async (path, body) => {
  const check: BodyChecker['check'] = async () => {
    throw new AssayError('unsupported_schema', 'Use another one.');
  };
  const backend: InferenceBackend = { runTasks: admitting, listModels: async () => [], chat: async function* () {} };
  const app = createApp({ backend, keys: listedKeys([KEY]), checker: { check } });
  const headers = { authorization: 'Bearer s', 'content-type': 'application/json' };
  const response = await app.request(path, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(await response.text()).not.toContain('Use another one.');
});

test('what the checker accepts is answered', async () => {
  const batches: TaskBatch[] = [];
  const send = appOf(
    (batch, call) => {
      batches.push(batch);
      return admitting(batch, call);
    },
    { checker: { check: async () => {} } },
  );
  const [[, body] = []] = bodies(LONG);
  expect((await send({ body: JSON.stringify(body) })).status).toBe(200);
  expect(batches).toMatchObject([{ tasks: [{ shape: { kind: 'schema', schema: object(LONG) } }] }]);
});
