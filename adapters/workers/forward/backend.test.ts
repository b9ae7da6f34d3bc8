import { describe, expect, it } from 'vitest';
import { SSE_COMMENT, SSE_DONE, sseData } from '../../../handlers/event-stream.ts';
import type { Call, ChatEvent, TaskBatch } from '../../../lib/backend.ts';
import { systemClock } from '../../../lib/clock.ts';
import { TASKS_PATH } from '../../../lib/contract/internal.ts';
import { AssayError } from '../../../lib/errors.ts';
import { parseModelId } from '../../../lib/model-id.ts';
import type { AttemptRecord } from '../log.ts';
import { Fleet } from '../upstreams/fleet.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { ForwardingBackend } from './backend.ts';

const model = parseModelId('assay/starter');

type Answer = Response | 'refuses' | 'hangs' | (() => Response | Promise<Response>);

const WELL = async () => Response.json({ active_model: 'assay/starter', state: 'loaded', status: 'ok' });
/** The answer of a box that is asked for its health. */
let healthOf: (request: Request) => Promise<Response> = WELL;

/**
 * Creates a backend whose upstreams give these answers: the first upstream that is asked gives the first one, and so
 * on. Then the last answer is repeated.
 */
function edge(answers: readonly Answer[], upstreams = 4, otherVersion = false, aliveMs?: number) {
  const asked: Request[] = [];
  const attempts: AttemptRecord[] = [];
  const list: Upstream[] = Array.from({ length: upstreams }, (_, i) => ({
    name: `box-${i}`,
    url: `http://127.0.0.1/${i}`,
    key_secret: 'KEY',
    models: [model],
    weight: 1,
  }));
  const fleet = new Fleet({
    upstreams: list,
    report: () => new Promise(() => {}),
    waitUntil: () => {},
    clock: systemClock,
    edge: 'e',
  });
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const request = new Request(url as string, init);
    if (request.url.endsWith('/health')) return healthOf(request);
    if (otherVersion && request.url.includes('/internal/')) return error(404, 'route_not_found');
    const answer = answers[Math.min(asked.length, answers.length - 1)]!;
    asked.push(request);
    if (answer === 'refuses') throw new TypeError('connection refused');
    if (answer === 'hangs') {
      return new Promise((_, reject) => {
        request.signal.addEventListener('abort', () => reject(request.signal.reason));
      });
    }
    return typeof answer === 'function' ? answer() : answer.clone();
  };
  const deps = {
    fetch,
    keyOf: () => 'secret',
    clock: systemClock,
    log: (record: AttemptRecord) => attempts.push(record),
  };
  const backend = new ForwardingBackend(fleet, deps, {
    ...{ answerMs: aliveMs === undefined ? 1_000 : 30_000, silenceMs: 500, listMs: 1_000 },
    ...(aliveMs === undefined ? {} : { aliveMs }),
  });
  return { backend, asked, attempts, fleet };
}

const call = (): Call & { admitted: number; leave(): void } => {
  const leaving = new AbortController();
  return {
    requestId: 'request-1',
    signal: leaving.signal,
    admitted: 0,
    async admit() {
      this.admitted++;
    },
    leave: () => leaving.abort(),
  };
};

const batch: TaskBatch = {
  model,
  input: { context: 'The invoice is due in May.' },
  media: [],
  tasks: [
    { type: 'decide', name: '10', question: 'Due?' },
    { type: 'decide', name: '__proto__', question: 'Paid?' },
    { type: 'decide', name: '2', question: 'When?' },
  ],
  temperature: 0,
  maxOutputTokens: 16,
};

const batchUsage = { promptTokens: 7, completionTokens: 3 };
const answers = [
  { name: '10', json: '{"value":"1.50"}' },
  { name: '__proto__', json: '{"value":"no"}' },
  { name: '2', json: '{"value":"May"}' },
];
const ok = Response.json({ model, answers, finishReason: 'stop', usage: batchUsage });
/** The same answer in the public format. */
const publicOk = new Response(
  `{"id":"x","model":"assay/starter","choices":[{"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}],
  "results":{"10":{"value":"1.50"},"__proto__":{"value":"no"},"2":{"value":"May"}},"tasks":{},
  "usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`,
);
const error = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json(
    { error: { type: 'server_error', message: `said ${code}`, code, param: 'tasks[0]' } },
    { status, headers },
  );

const asError = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (thrown: unknown) => thrown as AssayError,
  );

describe('runTasks', () => {
  it.each([
    ['within the deadline', 'hangs'],
    ['within its own', error(500, 'timeout')],
  ] as const)('stops to use a box that did not answer three requests in a row %s', async (_, answer) => {
    const { backend, attempts, fleet } = edge([answer, answer, ok, answer, answer, answer], 1);
    for (const expected of ['late', 'late', 'answered', 'late', 'late', 'late']) {
      expect(fleet.status()).toMatchObject([{ state: 'closed' }]);
      const asked = backend.runTasks(batch, call());
      if (expected === 'late') expect(await asError(asked)).toMatchObject({ code: 'timeout' });
      else expect(await asked).toMatchObject({ model });
      expect(attempts.at(-1)?.outcome).toBe(expected);
    }
    expect(fleet.status()).toMatchObject([{ state: 'open' }]);
  });

  it('sends requests of one session to one box, whatever they are about', async () => {
    const boxOf = async (context: string, session?: string) => {
      const { backend, asked } = edge([ok]);
      await backend.runTasks({ ...batch, input: { context } }, { ...call(), ...(session ? { session } : {}) });
      return asked[0]!.url;
    };
    const contexts = Array.from({ length: 12 }, (_, i) => `context ${i}`);
    expect(new Set(await Promise.all(contexts.map((one) => boxOf(one, 'case 7')))).size).toBe(1);
    expect(new Set(await Promise.all(contexts.map((one) => boxOf(one)))).size).toBeGreaterThan(1);
    expect(new Set(await Promise.all(contexts.map((one) => boxOf('x', one)))).size).toBeGreaterThan(1);
  });

  it('gives each answer under its name, in the order sent, byte for byte', async () => {
    const { backend, asked, attempts } = edge([ok]);
    const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: 'c'.repeat(16), flags: '01' };
    const one = { ...call(), priority: 'batch' as const, trace };
    expect(await backend.runTasks(batch, one)).toEqual({
      model,
      finishReason: 'stop',
      usage: { promptTokens: 7, completionTokens: 3 },
      answers: [
        { name: '10', json: '{"value":"1.50"}' },
        { name: '__proto__', json: '{"value":"no"}' },
        { name: '2', json: '{"value":"May"}' },
      ],
    });
    expect(one.admitted).toBe(1);
    expect(asked[0]?.headers.get('authorization')).toBe('Bearer secret');
    expect(asked[0]?.headers.get('x-request-id')).toBe('request-1');
    expect(asked[0]?.headers.get('assay-priority')).toBe('batch');
    expect(asked[0]?.headers.get('traceparent')).toBe(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`);
    expect(attempts).toMatchObject([{ outcome: 'answered', usage: { promptTokens: 7, completionTokens: 3 } }]);
  });

  it.each([
    [undefined, null],
    ['interactive', null],
    ['batch', 'batch'],
  ] as const)('sends a box the priority %s as the header %s', async (priority, sent) => {
    const { backend, asked } = edge([ok]);
    await backend.runTasks(batch, { ...call(), ...(priority ? { priority } : {}) });
    expect(asked[0]?.headers.get('assay-priority')).toBe(sent);
  });

  it.each([
    [undefined, null],
    [0, '0ms'],
    [90_000.5, '90000.5ms'],
    [Number.POSITIVE_INFINITY, '-1'],
  ] as const)('sends a box that the model is kept %s ms as the header %s', async (keepAliveMs, sent) => {
    const { backend, asked } = edge([ok]);
    await backend.runTasks(batch, { ...call(), ...(keepAliveMs === undefined ? {} : { keepAliveMs }) });
    expect(asked[0]?.headers.get('assay-keep-alive')).toBe(sent);
  });

  it.each<[string, Answer[], number, string | null]>([
    ['a refused connection', ['refuses', ok], 2, null],
    ['a busy box', [error(429, 'overloaded', { 'retry-after': '3' }), ok], 2, null],
    ['a failed engine', [error(500, 'engine_failed'), ok], 2, null],
    ['a box with another model loaded', [error(500, 'model_not_loaded'), ok], 2, null],
    ["a box without the model's files", [error(404, 'model_not_found'), ok], 2, null],
    ['a proxy that lost its box', [new Response('<html>', { status: 502 }), ok], 2, null],
    ['a box that does not know the key', [error(401, 'invalid_api_key'), ok], 2, null],
    ['an answer cut short', [new Response('{"id":"x","mod'), ok], 2, null],
    ['an answer that breaks off', [stream('{"id":"x","mod', new TypeError('terminated')), ok], 2, null],
    ['an answer without end', [endless(), ok], 2, null],
    [
      'a short answer that decompresses to one without end',
      [endless({ 'content-encoding': 'gzip', 'content-length': '4096' }), ok],
      2,
      null,
    ],
    [
      'a redirect, which is never followed',
      [new Response(null, { status: 302, headers: { location: '/' } }), ok],
      2,
      null,
    ],
    ['an answer without one of the tasks', [Response.json({ results: {} }), ok], 2, null],
    ['the third box answers', ['refuses', 'refuses', ok], 3, null],
    ['three boxes are tried, no more', ['refuses'], 3, 'backend_unreachable'],
    ['the most telling error', ['refuses', error(500, 'engine_failed'), 'refuses'], 3, 'engine_failed'],
    ['all busy', [error(429, 'overloaded', { 'retry-after': '3' })], 3, 'overloaded'],
    ["too long is the request's own fault", [error(422, 'input_too_long')], 1, 'input_too_long'],
    ['a model that no box has is passed on', [error(422, 'model_not_found')], 3, 'model_not_found'],
    ['a box that hangs is not tried elsewhere', ['hangs'], 1, 'timeout'],
    ["a request that took too long for a box isn't tried elsewhere", [error(500, 'timeout')], 1, 'timeout'],
    ['a box that hangs in the middle of its answer', [stream('{"id":', null)], 1, 'timeout'],
  ])('%s', async (_, answers, tried, code) => {
    const { backend, asked } = edge(answers);
    const result = await asError(backend.runTasks(batch, call()));
    expect(result?.code ?? null).toBe(code);
    expect(asked.length).toBe(tried);
    expect(new Set(asked.map(({ url }) => url)).size).toBe(tried);
  });

  it('asks another box if the one that has the request does not answer for its health, either', async () => {
    healthOf = ({ url }) => (url === asked[0]!.url.replace(TASKS_PATH, '/health') ? Promise.reject() : WELL());
    const { backend, asked, attempts } = edge(['hangs', ok], 4, false, 5);
    expect((await backend.runTasks(batch, call())).answers).toHaveLength(3);
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'answered']);
  });

  it('lets a box work on as long as it says that it is well', async () => {
    let looks = 0;
    const answer = Promise.withResolvers<Response>();
    healthOf = () => {
      if (++looks === 3) answer.resolve(ok.clone());
      return WELL();
    };
    const { backend, attempts } = edge([() => answer.promise], 4, false, 5);
    await backend.runTasks(batch, call());
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['answered']);
  });

  it('passes on the param of an error and the shortest wait', async () => {
    const own = edge([error(422, 'input_too_long')]);
    expect(await asError(own.backend.runTasks(batch, call()))).toMatchObject({
      param: 'tasks[0]',
      message: 'said input_too_long',
    });
    const waits = ['9', '4', '6'].map((seconds) => error(429, 'overloaded', { 'retry-after': seconds }));
    expect(await asError(edge(waits).backend.runTasks(batch, call()))).toMatchObject({ retryAfterSeconds: 4 });
  });

  it('sends the batch itself to a box of the same version', async () => {
    const { backend, asked } = edge([ok]);
    await backend.runTasks({ ...batch, cacheSalt: 's' }, call());
    expect(asked[0]?.url.endsWith(TASKS_PATH)).toBe(true);
    expect(await asked[0]!.json()).toEqual({ ...batch, cacheSalt: 's' });
  });

  it('sends a box of another version the public format', async () => {
    const { backend, asked } = edge([publicOk], 1, true);
    for (let i = 0; i < 2; i++) expect(await backend.runTasks(batch, call())).toMatchObject({ model, answers });
    expect(asked.map(({ url }) => new URL(url).pathname.slice(2))).toEqual(['/v1/tasks', '/v1/tasks']);
  });

  it('sends probabilities to boxes of the same version only', async () => {
    const tasks = [{ type: 'decide', name: 'q0', question: 'Due?', options: ['a', 'b'] }] as const;
    const asking = { ...batch, tasks, probabilities: { calibrated: true } };
    const optionLogprobs = [-0.1, Math.log(1 - Math.exp(-0.1))];
    const told = [{ name: 'q0', json: '{"value":"a"}', optionLogprobs }];
    const own = edge([
      Response.json({ model, answers: told, finishReason: 'stop', usage: batchUsage, cachedTokens: 2 }),
    ]);
    expect(await own.backend.runTasks(asking, call())).toMatchObject({ answers: told, cachedTokens: 2 });
    const { backend, asked, fleet } = edge([publicOk], 1, true);
    expect(await asError(backend.runTasks(asking, call()))).toMatchObject({
      code: 'backend_unreachable',
      message: expect.stringContaining('Update both to the same version.'),
    });
    expect([asked.length, fleet.status()[0]?.state]).toEqual([0, 'closed']);
  });

  it.each([
    ['too few probabilities', { optionLogprobs: [-0.1] }],
    ['a text that is no JSON', { json: '{', optionLogprobs: [-0.1, -2] }],
    ['another name', { name: 'q1', optionLogprobs: [-0.1, -2] }],
    ['a member that is not of the contract', { optionLogprobs: [-0.1, -2], extra: 1 }],
  ])('passes on no answer with %s', async (_, changes) => {
    const tasks = [{ type: 'decide', name: 'q0', question: 'Due?', options: ['a', 'b'] }] as const;
    const told = [{ name: 'q0', json: '{"value":"a"}', ...changes }];
    const { backend } = edge([Response.json({ model, answers: told, finishReason: 'stop', usage: batchUsage })]);
    const asking = { ...batch, tasks, probabilities: { calibrated: true } };
    expect(await asError(backend.runTasks(asking, call()))).toMatchObject({ code: 'backend_unreachable' });
  });

  it('asks no box and takes no quota for a model that none serves', async () => {
    const { backend, asked } = edge([ok]);
    const one = call();
    expect(await asError(backend.runTasks({ ...batch, model: 'a/b' }, one))).toMatchObject({
      code: 'model_not_found',
      param: 'model',
    });
    expect([asked.length, one.admitted]).toEqual([0, 0]);
  });

  it('asks no box when the quota is used up', async () => {
    const { backend, asked } = edge([ok]);
    const refused = new AssayError('rate_limited', 'no more', { retryAfterSeconds: 5 });
    const one = { ...call(), admit: () => Promise.reject(refused) };
    expect(await asError(backend.runTasks(batch, one))).toBe(refused);
    expect(asked.length).toBe(0);
  });

  it('stops a box that hangs in the middle of its answer', async () => {
    const { backend, asked } = edge([stream('{"id":', null)]);
    await asError(backend.runTasks(batch, call()));
    expect(asked[0]?.signal.aborted).toBe(true);
  });

  it('stops the box when the caller leaves, and counts no failure', async () => {
    const { backend, asked, attempts } = edge(['hangs']);
    const one = call();
    const running = asError(backend.runTasks(batch, one));
    await expect.poll(() => asked.length).toBe(1);
    one.leave();
    expect((await running)?.name).toBe('AbortError');
    expect(asked[0]?.signal.aborted).toBe(true);
    expect(attempts).toMatchObject([{ outcome: 'left' }]);
  });

  it('opens the breaker of a box that fails, so that it is not asked again', async () => {
    const { backend, asked } = edge(['refuses'], 1);
    for (let i = 0; i < 5; i++)
      expect(await asError(backend.runTasks(batch, call()))).toMatchObject({ code: 'backend_unreachable' });
    expect(asked.length).toBe(3);
  });
});

const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model };
const chunk = (delta: object, rest: object = {}) =>
  sseData({ ...head, choices: [{ index: 0, delta, finish_reason: null, logprobs: null, ...rest }] });
const metrics = {
  queue_ms: 1,
  prompt_ms: 2,
  time_to_first_token_ms: 3,
  generation_ms: 4,
  total_ms: 5,
  prompt_tokens: 6,
  cached_tokens: 7,
  completion_tokens: 8,
  prompt_tokens_per_second: 9.5,
  tokens_per_second: 10.5,
  device: 'NPU',
};
const usage = { prompt_tokens: 6, completion_tokens: 8, total_tokens: 14 };

/** The events of a chat as a box sends them over the internal route, and in the public format. */
const INTERNAL = {
  begin: sseData({ type: 'start', model }),
  said: (text: string) => sseData({ type: 'content', text }),
  end: sseData({ type: 'finish', reason: 'stop', usage: { promptTokens: 6, completionTokens: 8 }, metrics }),
};
const PUBLIC = {
  begin: chunk({ role: 'assistant' }),
  said: (text: string) => chunk({ content: text }),
  end: chunk({}, { finish_reason: 'stop' }) + sseData({ ...head, choices: [], usage, metrics }) + SSE_DONE,
};

function endless(headers: Record<string, string> = {}): () => Response {
  const mebibyte = new Uint8Array(1024 * 1024).fill(0x20);
  return () => new Response(new ReadableStream({ pull: (to) => to.enqueue(mebibyte) }), { headers });
}

/** Builds a response with a stream of these chunks. `null` makes the stream wait for ever, an `Error` breaks it. */
function stream(...pieces: (string | Uint8Array | Error | null)[]): () => Response {
  return () => {
    const left = [...pieces];
    const body = new ReadableStream(
      {
        async pull(controller) {
          const piece = left.shift();
          if (piece === undefined) controller.close();
          else if (piece === null) await new Promise(() => {});
          else if (piece instanceof Error) controller.error(piece);
          else controller.enqueue(typeof piece === 'string' ? new TextEncoder().encode(piece) : piece);
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
}

async function chat(answers: Answer[], otherVersion: boolean) {
  const { backend, asked, attempts } = edge(answers, 4, otherVersion);
  const events: ChatEvent[] = [];
  const request = {
    messages: [],
    stop: [],
    presencePenalty: 0,
    frequencyPenalty: 0,
    format: { type: 'text' },
  } as const;
  let code: string | null = null;
  try {
    for await (const event of backend.chat(request, call())) events.push(event);
  } catch (error) {
    code = (error as AssayError).code;
  }
  return { events, code, tried: asked.length, attempts };
}

const said = (events: readonly ChatEvent[]) =>
  events.map((event) => ('text' in event ? `${event.type}: ${event.text}` : event.type));

describe.each([
  ['of the same version', INTERNAL, false],
  ['of another version', PUBLIC, true],
] as const)('chat with boxes %s', (_, { begin, said: says, end }, otherVersion) => {
  it('reads reasoning, content with log-probabilities, usage and metrics', async () => {
    const token = { token: 'Hi', logprob: -0.5, bytes: [72, 105] };
    const logprobs = { content: [{ ...token, top_logprobs: [token] }], refusal: null };
    const parts = otherVersion
      ? [chunk({ reasoning_content: 'Hm.' }), SSE_COMMENT, chunk({ content: 'Hi' }, { logprobs })]
      : [
          sseData({ type: 'reasoning', text: 'Hm.' }),
          SSE_COMMENT,
          sseData({ type: 'content', text: 'Hi', logprobs: [{ ...token, top: [token] }] }),
        ];
    const { events, code, attempts } = await chat([stream(begin, ...parts, end)], otherVersion);
    expect(code).toBeNull();
    expect(events).toEqual([
      { type: 'start', model },
      { type: 'reasoning', text: 'Hm.' },
      { type: 'content', text: 'Hi', logprobs: [{ ...token, top: [token] }] },
      { type: 'finish', reason: 'stop', usage: { promptTokens: 6, completionTokens: 8 }, metrics },
    ]);
    expect(attempts).toMatchObject([{ outcome: 'answered', metrics }]);
  });

  it('joins chunks wherever the network splits them', async () => {
    const bytes = new TextEncoder().encode(begin + says('Grüße 🎉') + end);
    const { events } = await chat([stream(...Array.from(bytes, (byte) => new Uint8Array([byte])))], otherVersion);
    expect(said(events)).toEqual(['start', 'content: Grüße 🎉', 'finish']);
  });

  it.each<[string, Answer[], number, string | null, string[]]>([
    [
      'a box that dies before its first word is replaced',
      [stream(begin, new Error('gone')), stream(begin, says('a'), end)],
      2,
      null,
      ['start', 'content: a', 'finish'],
    ],
    [
      'a box whose stream names no model',
      [stream(begin.replaceAll(model, 'none'), end), stream(begin, end)],
      2,
      null,
      ['start', 'finish'],
    ],
    [
      'a box whose stream begins with a word',
      [stream(says('a'), end), stream(begin, end)],
      2,
      null,
      ['start', 'finish'],
    ],
    [
      'an engine that fails before its first word',
      [stream(begin, sseData({ error: { code: 'engine_failed', message: 'm', type: 't' } })), stream(begin, end)],
      2,
      null,
      ['start', 'finish'],
    ],
    [
      'a request that took too long for a box',
      [stream(begin, sseData({ error: { code: 'timeout', message: 'm', type: 't' } })), stream(begin, end)],
      1,
      'timeout',
      ['start'],
    ],
    ['a model not loaded', [error(409, 'model_not_loaded'), stream(begin, end)], 2, null, ['start', 'finish']],
    [
      'a box that dies after a word is not replaced',
      [stream(begin, says('a'), new Error('gone'))],
      1,
      'backend_unreachable',
      ['start', 'content: a'],
    ],
    [
      'an error after a word is passed on',
      [stream(begin, says('a'), sseData({ error: { code: 'engine_failed', message: 'm', type: 't' } }))],
      1,
      'engine_failed',
      ['start', 'content: a'],
    ],
    ['an end without a finish', [stream(begin, says('a'))], 1, 'backend_unreachable', ['start', 'content: a']],
    ['a box that falls silent', [stream(begin, says('a'), null)], 1, 'timeout', ['start', 'content: a']],
    [
      'a box silent before its first word is replaced',
      [stream(begin, null), stream(begin, end)],
      2,
      null,
      ['start', 'finish'],
    ],
    ['bytes that are no chunk', [stream('data: {"a":1}\n\n')], 3, 'backend_unreachable', []],
    ['an event without an end', [stream(`data: ${'x'.repeat(2_000_000)}`)], 3, 'backend_unreachable', []],
  ])('%s', async (_, answers, tried, code, expected) => {
    const result = await chat(answers, otherVersion);
    expect({ code: result.code, tried: result.tried, said: said(result.events) }).toEqual({
      code,
      tried,
      said: expected,
    });
  });

  it('counts an answer whose reader stops at its end', async () => {
    const { backend, attempts } = edge([stream(begin, end, null)], 4, otherVersion);
    const request = {
      messages: [],
      stop: [],
      presencePenalty: 0,
      frequencyPenalty: 0,
      format: { type: 'text' },
    } as const;
    for await (const event of backend.chat(request, call())) if (event.type === 'finish') break;
    expect(attempts).toMatchObject([{ outcome: 'answered' }]);
  });

  it('tells the box when the caller stops reading', async () => {
    let cancelled = false;
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new TextEncoder().encode(begin + says('a'))),
      cancel: () => {
        cancelled = true;
      },
    });
    const { backend, attempts } = edge([() => new Response(body)], 4, otherVersion);
    const request = {
      messages: [],
      stop: [],
      presencePenalty: 0,
      frequencyPenalty: 0,
      format: { type: 'text' },
    } as const;
    for await (const event of backend.chat(request, call())) if (event.type === 'content') break;
    expect(cancelled).toBe(true);
    expect(attempts).toMatchObject([{ outcome: 'left' }]);
  });
});

describe('listModels', () => {
  const list = (...data: [id: string, status: string, created?: number][]) =>
    Response.json({
      object: 'list',
      data: data.map(([id, status, created]) => ({ id, object: 'model', created, owned_by: 'assay', status })),
    });

  it('gives the configured models, each with its best status and earliest time', async () => {
    const { backend } = edge([
      list(['assay/starter', 'downloaded', 7], ['not/configured', 'active']),
      list(['assay/starter', 'active', 9]),
      list(['assay/starter', 'compiled', 0]),
      error(500, 'internal_error'),
    ]);
    expect(await backend.listModels(call())).toEqual([{ id: model, status: 'active', created: 7 }]);
  });

  it('reads the list of a box that sends no times', async () => {
    const { backend } = edge([list(['assay/starter', 'active'])]);
    expect(await backend.listModels(call())).toEqual([{ id: model, status: 'active' }]);
  });

  it('throws if no box answers', async () => {
    const { backend } = edge(['refuses']);
    expect(await asError(backend.listModels(call()))).toMatchObject({ code: 'backend_unreachable' });
  });
});
