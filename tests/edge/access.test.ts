import { beforeEach, describe, expect, it } from 'vitest';
import { chat, errorCode, eventsOf, post, question } from './calls.ts';
import { withEdge } from './fixture.ts';

const as = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } });

describe('who may ask', () => {
  const fixture = withEdge({
    edges: 2,
    keys: {
      'test-key': {},
      narrow: { models: ['other/*'] },
      revoked: { revoked: true },
      'three-a-minute': { requestsPerMinute: 3 },
      busy: { requestsPerMinute: 120 },
      admin: { scopes: ['admin'] },
      nightly: { priority: 'batch' },
    },
  });
  beforeEach(() => {
    for (const upstream of fixture.upstreams) upstream.play({});
  });

  it.each<[string, unknown, RequestInit, number, string]>([
    ['no key', question('x'), { headers: { authorization: '' } }, 401, 'missing_api_key'],
    ['an unknown key', question('x'), as('nobody'), 401, 'invalid_api_key'],
    ['a revoked key', question('x'), as('revoked'), 401, 'invalid_api_key'],
    ['a key for other models', question('x'), as('narrow'), 403, 'model_not_allowed'],
    ['malformed JSON', '{"model":', {}, 400, 'malformed_json'],
    ['an unknown field', { ...question('x'), stream: true }, {}, 400, 'unknown_field'],
    ['an invalid value', { ...question('x'), temperature: 3 }, {}, 422, 'invalid_value'],
    ['a model that no box serves', { ...question('x'), model: 'no/such' }, {}, 422, 'model_not_found'],
  ])('%s: refused at the edge, no box is asked', async (_, body, init, status, code) => {
    const response = await post(fixture.edge, '/v1/tasks', body, init);
    expect(response.status).toBe(status);
    expect(await errorCode(response)).toBe(code);
    expect(fixture.asked()).toEqual([]);
  });

  it.each([
    ['test-key', undefined],
    ['nightly', 'batch'],
  ])('sends requests of the key %s with the priority %s', async (secret, priority) => {
    expect((await post(fixture.edge, '/v1/tasks', question('x'), as(secret))).status).toBe(200);
    const [run] = fixture.asked()[0]!.recorded;
    expect([run!.call, run!.priority]).toEqual(['runTasks', priority]);
  });

  it.each([
    ['/', 200],
    ['/health', 200],
    ['/currentmodel', 401],
    ['/v1/models', 401],
  ])('%s without a key: %i', async (path, status) => {
    expect((await fetch(`${fixture.edge.urls[0]}${path}`)).status).toBe(status);
  });

  it("shares a key's quota between two edges, and says when to come again", async () => {
    const ask = (edge: number) => post(fixture.edge, '/v1/tasks', question('quota'), { ...as('three-a-minute'), edge });
    const begin = Date.now();
    for (const edge of [0, 1, 0]) expect((await ask(edge)).status).toBe(200);
    for (const edge of [1, 0]) {
      const response = await ask(edge);
      expect(response.status).toBe(429);
      const seconds = Number(response.headers.get('retry-after'));
      // A token is added every 20 seconds, and a little of the first 20 has passed.
      expect(seconds).toBeGreaterThanOrEqual(20 - Math.ceil((Date.now() - begin) / 1_000));
      expect(seconds).toBeLessThanOrEqual(20);
      expect(await errorCode(response)).toBe('rate_limited');
    }
  });

  it('lets exactly the quota pass over two busy edges', async () => {
    const begin = Date.now();
    const statuses: number[] = [];
    const caller = async (edge: number) => {
      for (let i = 0; i < 50; i++) {
        const response = await post(fixture.edge, '/v1/tasks', question('busy'), { ...as('busy'), edge });
        await response.arrayBuffer();
        statuses.push(response.status);
      }
    };
    await Promise.all([0, 1, 0, 1, 0, 1].map(caller));
    const passed = statuses.filter((status) => status === 200).length;
    expect(statuses).toHaveLength(300);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    const seconds = (Date.now() - begin) / 1_000;
    // A minute's worth at once, and two for each second since.
    expect(passed).toBeGreaterThanOrEqual(120);
    expect(passed).toBeLessThanOrEqual(120 + Math.ceil(2 * seconds));
  }, 60_000);

  it('logs a request with its attempts, and nothing of what was said', async () => {
    const { edge } = fixture;
    const logged = (id: string) => edge.log.filter((line) => line.includes(id)).map((line) => JSON.parse(line));
    const attempt = { box: expect.stringMatching(/^npu-/), outcome: 'answered', usage: { promptTokens: 10 } };
    await post(edge, '/v1/tasks', question('a secret plan'), { headers: { 'x-request-id': 'log-1' } });
    await expect.poll(() => logged('log-1')).toHaveLength(1);
    expect(logged('log-1')).toMatchObject([{ event: 'request', key: 'test-key', status: 200, attempts: [attempt] }]);

    await (await post(edge, '/v1/chat/completions', chat('hi'), { headers: { 'x-request-id': 'log-2' } })).text();
    await expect.poll(() => logged('log-2').map(({ event }) => event)).toEqual(['request', 'attempts']);

    await post(edge, '/v1/tasks', '{"context": a secret plan', { headers: { 'x-request-id': 'log-3' } });
    await expect.poll(() => logged('log-3')).toMatchObject([{ status: 400, error: { code: 'malformed_json' } }]);
    expect(edge.log.join('\n')).not.toMatch(/secret|key-of-the-box/);
  });

  it('tells of the edge itself without a key', async () => {
    const [url] = fixture.edge.urls;
    expect(await (await fetch(`${url}/`)).json()).toMatchObject({ status: 'running' });
    expect(await (await fetch(`${url}/health`)).json()).toMatchObject({ status: 'ok' });
    expect((await fetch(`${url}/v1/models`)).status).toBe(401);
  });

  it('lists models and streams chats', async () => {
    const list = await fetch(`${fixture.edge.urls[0]}/v1/models`, as('test-key'));
    expect(await list.json()).toMatchObject({
      object: 'list',
      data: [{ id: 'assay/starter', object: 'model', created: 0, owned_by: 'assay', status: 'active' }],
    });
    const sent = { ...chat('hi'), stream_options: { include_usage: true } };
    const events = eventsOf(await (await post(fixture.edge, '/v1/chat/completions', sent)).text());
    expect(events.at(-3)).toMatchObject({ choices: [{ finish_reason: 'stop' }], usage: null });
    expect(events.at(-2)).toMatchObject({ choices: [], usage: { total_tokens: 7 } });
    expect(events.at(-1)).toBe('[DONE]');
    const whole = await post(fixture.edge, '/v1/chat/completions', chat('hi', false));
    expect(await whole.json()).toMatchObject({ choices: [{ message: { content: 'Hello.' } }] });
  });
});

describe('a named box', () => {
  const fixture = withEdge({
    keys: { 'test-key': {}, admin: { scopes: ['admin'] }, narrow: { scopes: ['admin'], models: ['other/*'] } },
  });
  const url = (path: string) => `${fixture.edge.urls[0]}/boxes${path}`;
  const admin = { authorization: 'Bearer admin', 'content-type': 'application/json' };
  beforeEach(() => {
    for (const upstream of fixture.upstreams) upstream.play({});
  });

  it.each([
    ['GET', '', 403, 'model_not_allowed'],
    ['GET', '/npu-1/health', 403, 'model_not_allowed'],
    ['POST', '/npu-1/unload', 403, 'model_not_allowed'],
  ])('%s /boxes%s needs the admin scope', async (method, path, status, code) => {
    const response = await fetch(url(path), { method, headers: { authorization: 'Bearer test-key' } });
    expect([response.status, await errorCode(response)]).toEqual([status, code]);
    expect((await fetch(url(path), { method })).status).toBe(401);
    expect(fixture.asked()).toEqual([]);
  });

  it.each([
    ['POST', '/npu-1/load', { model: 'assay/starter' }],
    ['POST', '/npu-1/unload', undefined],
    ['POST', '/npu-1/delete', { model: 'assay/starter' }],
    ['POST', '/npu-1/download', { model: 'assay/starter' }],
    ['DELETE', '/npu-1/v1/models/assay/starter', undefined],
    ['DELETE', '/npu-1/v1/models/assay%2Fstarter', undefined],
  ])('%s /boxes%s is not for an admin key that may not use the model', async (method, path, body) => {
    const headers = { authorization: 'Bearer narrow', 'content-type': 'application/json' };
    const init = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
    const response = await fetch(url(path), init);
    expect([response.status, await errorCode(response)]).toEqual([403, 'model_not_allowed']);
    expect(fixture.asked()).toEqual([]);
  });

  it('is listed', async () => {
    const list = (await (await fetch(url(''), { headers: admin })).json()) as { data: object[] };
    expect(list.data).toHaveLength(3);
    expect(list.data[0]).toMatchObject({ name: 'npu-1', models: ['assay/starter'], weight: 1, breaker: 'closed' });
  });

  it.each([
    ['POST', '/load', { model: 'assay/starter' }, 'load'],
    ['POST', '/v1/models/load', { model: 'assay/starter', max_prompt_len: 1024 }, 'load'],
    ['POST', '/unload', undefined, 'unload'],
    ['POST', '/delete', { model: 'a/b', compiled_only: true }, 'remove'],
    ['DELETE', '/v1/models/a/b', undefined, 'remove'],
    ['DELETE', '/v1/models/a%2Fb', undefined, 'remove'],
    ['POST', '/download', { model: 'a/b', allow_download: true }, 'download'],
  ])('%s %s reaches that box alone', async (method, path, body, call) => {
    const init = { method, headers: admin, ...(body ? { body: JSON.stringify(body) } : {}) };
    const response = await fetch(url(`/npu-2${path}`), init);
    expect(await response.json()).toMatchObject({ status: 'success' });
    expect(fixture.asked()).toEqual([fixture.upstreams[1]]);
    expect(fixture.upstreams[1]!.recorded.map((one) => one.call)).toContain(call);
  });

  it('passes on the event stream of a long download as it comes', async () => {
    const progress = (bytes: number) => ({ type: 'progress', stage: 'downloading', bytes, total: 20 }) as const;
    fixture.upstreams[0]!.play({ download: [progress(10), { waitMs: 'forever' }] });
    const response = await fetch(url('/npu-1/download'), {
      method: 'POST',
      headers: { ...admin, accept: 'text/event-stream' },
      body: JSON.stringify({ model: 'a/b' }),
    });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('10')) text += (await reader.read()).value;
    await reader.cancel();
  });

  it('answers with its own errors', async () => {
    const response = await fetch(url('/npu-1/load'), {
      method: 'POST',
      headers: admin,
      body: JSON.stringify({ model: 'not/here' }),
    });
    expect([response.status, await errorCode(response)]).toEqual([404, 'model_not_found']);
  });

  it.each([
    ['GET', '/npu-9/health', 404, 'route_not_found'],
    ['POST', '/npu-1/v1/chat/completions', 404, 'route_not_found'],
    ['POST', '/npu-1/v1/tasks', 404, 'route_not_found'],
    ['GET', '/npu-1/metrics', 404, 'route_not_found'],
    ['DELETE', '/npu-1/v1/models/..%2Fx', 400, 'invalid_model_id'],
  ])('%s /boxes%s is not there', async (method, path, status, code) => {
    const response = await fetch(url(path), { method, headers: admin });
    expect([response.status, await errorCode(response)]).toEqual([status, code]);
    expect(fixture.asked()).toEqual([]);
  });

  it.each([
    ['POST', '', 'GET, HEAD'],
    ['DELETE', '/npu-1', 'GET, HEAD'],
    ['POST', '/npu-1/health', 'GET, HEAD'],
    ['GET', '/npu-1/load', 'POST'],
    ['GET', '/npu-1/v1/models/load', 'POST'],
    ['PUT', '/npu-1/v1/models/a/b', 'GET, HEAD, DELETE'],
  ])('%s /boxes%s is not allowed, and the response says what is', async (method, path, allowed) => {
    const response = await fetch(url(path), { method, headers: admin });
    expect([response.status, await errorCode(response)]).toEqual([405, 'method_not_allowed']);
    expect(response.headers.get('allow')).toBe(allowed);
    expect(fixture.asked()).toEqual([]);
  });

  it.each(['', '/npu-1', '/npu-1/health', '/npu-1/v1/models'])(
    'HEAD /boxes%s is a GET without a body',
    async (path) => {
      const response = await fetch(url(path), { method: 'HEAD', headers: admin });
      expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
        200,
        'application/json',
        '',
      ]);
    },
  );
});
