import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Hono } from 'hono';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { type ServerFlags, serverConfig } from '../../adapters/node/config.ts';
import { CLI_KEY, KeysStore } from '../../adapters/node/keys-file.ts';
import { requestLog } from '../../adapters/node/log.ts';
import { type ServeEffects, type Serving, serve } from '../../adapters/node/serve.ts';
import { startServer } from '../../adapters/node/server.ts';
import { createApp } from '../../handlers/app.ts';
import { errorResponse } from '../../handlers/error-response.ts';
import { AssayError } from '../../lib/errors.ts';
import { composeScripted } from '../scripted-backend/compose.ts';
import type { Recorded, Script } from '../scripted-backend/script.ts';

const KEY = 'key-with-twenty-four-characters';
const open: Serving[] = [];
afterEach(async () => {
  for (const serving of open.splice(0)) await serving.stop();
});

async function start(
  flags: ServerFlags = {},
  { terminal = true, ask, ...script }: Script & Partial<Pick<ServeEffects, 'terminal' | 'ask'>> = {},
) {
  const said: string[] = [];
  const recorded: Recorded[] = [];
  const home = flags.home ?? (await mkdtemp(join(tmpdir(), 'assay-serve-')));
  const config = serverConfig({ port: '0', home, ...flags }, {});
  const effects = {
    log: pino({ level: 'silent' }),
    say: (text: string) => said.push(text),
    terminal,
    ...(ask ? { ask } : {}),
  };
  const serving = await serve(config, { ...effects, compose: composeScripted(script, recorded) });
  open.push(serving);
  await serving.loaded;
  return { url: serving.url, home, said, recorded };
}

test.each([
  ['gpu', ['The GPU is not used. This machine has none.']],
  ['auto', []],
])('with --device %s, says why a device that was asked for is not used', async (device, expected) => {
  const devices = [
    { device: 'GPU' as const, used: false, reason: 'This machine has none.', figures: null },
    { device: 'NPU' as const, used: true, reason: 'It is faster.', figures: null },
  ];
  const { said } = await start({ device }, { active: { state: 'unloaded', model: null, device: 'CPU', devices } });
  expect(said.filter((line) => line.includes('not used'))).toEqual(expected);
});

describe('a first start', () => {
  test('makes a key and shows it once, beside a request that works when both are pasted into a shell', async () => {
    const { said, home } = await start();
    const greeting = said.join('\n');
    expect(greeting.match(/sk-assay-\S+/g)).toHaveLength(1);
    expect(greeting).toMatch(/^ {2}npm run -s assay -- pull \S+ && npm run -s assay -- load \S+ {4}# decisions: /m);
    expect(await new KeysStore(home).list()).toMatchObject([{ name: 'default', models: ['*'] }]);
    const exported = /export ASSAY_API_KEY=\S+/.exec(greeting)?.[0];
    const command = greeting.slice(greeting.indexOf('curl ')).split('\n\n')[0] ?? '';
    const script = `${exported}\n${command.replace('curl ', 'curl -s ')}`;
    const { stdout } = await promisify(execFile)('sh', ['-c', script]);
    expect(JSON.parse(stdout)).toMatchObject({ results: { refund: { value: 'yes' } } });
    const again = await start({ home });
    expect(again.said.join('\n')).not.toContain('sk-assay-');
  });

  test.each([
    ['accepts', 'd', true, ['download', 'load']],
    ['leaves', 'x', true, []],
    ['cannot reach the hub for', 'd', false, []],
  ])('offers a decision model that somebody %s with one key', async (_, key, online, calls) => {
    const ask = { key: async () => key, online: async () => online };
    const { said, recorded } = await start({}, { ask });
    await expect.poll(() => recorded.slice(1).map(({ call }) => call)).toEqual(calls);
    expect(said.some((line) => /^Press d to download and load \S+ \([\d.]+ GB, .+\)/.test(line))).toBe(online);
  });

  test('makes no key where the output may be a log, and says how to make one', async () => {
    const { said, home, url } = await start({}, { terminal: false });
    expect(said.join('\n')).not.toContain('sk-assay-');
    expect(said.join('\n')).toContain(`  npm run -s assay -- keys add my-key --admin --home ${home}\n`);
    const keys = new KeysStore(home);
    expect(await keys.list()).toEqual([]);
    const key = await keys.create({ name: 'my-key', models: ['*'], scopes: ['admin'] });
    const headers = { authorization: `Bearer ${key}` };
    expect((await fetch(`${url}/v1/tasks`, { method: 'POST', body: '{}', headers })).status).toBe(400);
  });

  test('with a given key makes none', async () => {
    const { said, home, url } = await start({ apiKey: KEY });
    expect(said.join('\n')).not.toContain('sk-assay-');
    expect(await new KeysStore(home).list()).toEqual([]);
    const call = (key: string) =>
      fetch(`${url}/v1/tasks`, { method: 'POST', body: '{}', headers: { authorization: `Bearer ${key}` } });
    expect((await call(KEY)).status).toBe(400);
    expect((await call('other')).status).toBe(401);
  });

  test('ends if it cannot store its key', async () => {
    const home = await mkdtemp(join(tmpdir(), 'assay-serve-'));
    await mkdir(join(home, 'keys.json.lock'));
    const said: string[] = [];
    const config = serverConfig({ port: '0', home }, {});
    const effects = { log: pino({ level: 'silent' }), say: (text: string) => said.push(text), terminal: true };
    await expect(serve(config, { ...effects, compose: composeScripted() })).rejects.toThrow();
    const url = /listens on (\S+)/.exec(said.join('\n'))?.[1] ?? '';
    await expect(fetch(url)).rejects.toThrow(/fetch failed/);
  });

  test('loads the model, and says how that went', async () => {
    const good = await start({ model: 'assay/starter' });
    expect(good.recorded).toMatchObject([{ call: 'load', model: 'assay/starter' }]);
    expect(good.said.at(-3)).toBe('assay/starter is ready on the CPU after 0.0 s, for prompts up to 4096 tokens.');
    expect(good.said.at(-2)).toContain('Try it:');
    expect(good.said.at(-1)).toMatch(/assay -- pull \S+/);
    const both = await start({ model: ['assay/starter', 'org/absent'] });
    expect(both.recorded.map(({ model }) => model)).toEqual(['assay/starter', 'org/absent']);
    const absent = await start({ model: 'org/absent' });
    expect(absent.said.at(-1)).toMatch(/^org\/absent is not loaded\. .*assay pull org\/absent/);
    expect((await fetch(absent.url)).status).toBe(200);
  });

  test('--no-load loads nothing', async () => {
    expect((await start({ load: false })).recorded).toEqual([]);
  });
});

describe('the address', () => {
  test('reports a port that is in use', async () => {
    const { url } = await start();
    const { port } = new URL(url);
    await expect(start({ port })).rejects.toThrow(
      `Port ${port} of 127.0.0.1 is in use. Stop the program that has it, or take another one: --port ${Number(port) + 1}`,
    );
  });

  test('reports an address that this machine does not have', async () => {
    await expect(start({ host: '192.0.2.1', apiKey: KEY })).rejects.toThrow(/This machine has no address 192\.0\.2\.1/);
  });

  test('one that other machines reach refuses to start without a key, and makes none', async () => {
    const home = await mkdtemp(join(tmpdir(), 'assay-serve-'));
    await expect(start({ host: '0.0.0.0', home })).rejects.toThrow(
      `needs an API key. Make one first:\n  npm run -s assay -- keys add my-key --admin --home ${home}\n`,
    );
    expect(await new KeysStore(home).list()).toEqual([]);
  });

  test('one that other machines reach needs the key on every route but GET / and /health', async () => {
    const { url } = await start({ host: '0.0.0.0', apiKey: KEY });
    const status = async (path: string, headers = {}) => (await fetch(url + path, { headers })).status;
    expect(await status('/')).toBe(200);
    expect(await status('/health')).toBe(200);
    expect(await status('/metrics')).toBe(401);
    expect(await status('/metrics', { authorization: `Bearer ${KEY}` })).toBe(200);
    expect(await status('/v1/models')).toBe(401);
    expect(await status('/v1/models', { authorization: `Bearer ${KEY}` })).toBe(200);
  });

  test('one that other machines reach needs a key that is hard to guess', async () => {
    await expect(start({ host: '0.0.0.0', apiKey: 'demo' })).rejects.toThrow(
      /at least 24 characters, and this one has 4/,
    );
  });

  test('keys stay valid while keys.json is damaged, and a given key does not need it', async () => {
    const home = await mkdtemp(join(tmpdir(), 'assay-serve-'));
    const keys = new KeysStore(home);
    const filed = await keys.create({ name: 'shop', models: ['*'], scopes: [] });
    const { url } = await start({ home, apiKey: KEY });
    const status = async (key: string) => {
      const headers = { authorization: `Bearer ${key}` };
      return (await fetch(`${url}/v1/tasks`, { method: 'POST', headers, body: '{}' })).status;
    };
    expect(await status(filed)).toBe(400);
    const whole = await readFile(keys.file, 'utf8');
    for (const damaged of ['', whole.slice(0, 20), '{"version":1,"keys":[{}]}']) {
      await writeFile(keys.file, damaged);
      expect([await status(filed), await status(KEY), await status('unknown')]).toEqual([400, 400, 401]);
    }
    await writeFile(keys.file, whole.replace('"name"', '"later": true, "name"'));
    expect([await status(filed), await status('unknown')]).toEqual([400, 401]);
    await writeFile(keys.file, '{"version":1,"keys":[]}');
    expect(await status(filed)).toBe(401);
  });

  test('one that other machines reach lets only keys with the admin scope change models', async () => {
    const home = await mkdtemp(join(tmpdir(), 'assay-serve-'));
    const keys = new KeysStore(home);
    const caller = await keys.create({ name: 'shop', models: ['*'], scopes: [] });
    const admin = await keys.create({ name: 'owner', models: ['*'], scopes: ['admin'] });
    const { url } = await start({ host: '0.0.0.0', home });
    const post = async (path: string, key: string) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
      const response = await fetch(url + path, { method: 'POST', headers, body: '{"model":"no/such"}' });
      return [response.status, ((await response.json()) as { error: { code: string } }).error.code];
    };
    for (const path of ['/load', '/v1/models/load', '/download', '/v1/models/download', '/delete', '/v1/models/delete'])
      expect(await post(path, caller), path).toEqual([403, 'model_not_allowed']);
    expect(await post('/unload', caller)).toEqual([403, 'model_not_allowed']);
    const headers = { authorization: `Bearer ${caller}` };
    expect((await fetch(`${url}/v1/models/no/such`, { method: 'DELETE', headers })).status).toBe(403);
    expect((await fetch(`${url}/v1/models`, { headers })).status).toBe(200);
    expect(await post('/load', admin)).toEqual([404, 'model_not_found']);
  });

  test('needs a key made on purpose: the one that the command line makes for itself does not count', async () => {
    const home = await mkdtemp(join(tmpdir(), 'assay-serve-'));
    await new KeysStore(home).create({ name: CLI_KEY, models: ['*'], scopes: ['admin'] });
    await expect(start({ host: '0.0.0.0', home })).rejects.toThrow(/needs an API key/);
    await start({ home });
    expect((await new KeysStore(home).list()).map(({ name }) => name)).toEqual([CLI_KEY, 'default']);
  });

  test('on the loopback address a foreign Host is refused, and an allowed Origin gets CORS headers', async () => {
    const { url } = await start({ allowOrigin: ['http://localhost:3000'] });
    const cors = await fetch(url, { headers: { origin: 'http://localhost:3000' } });
    expect(cors.headers.get('access-control-allow-origin')).toBe('http://localhost:3000');
    expect((await fetch(url, { headers: { origin: 'http://localhost:3001' } })).status).toBe(403);
    expect(await raw(url, 'GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 403 /,
    );
  });
});

describe('requests that are not valid HTTP', () => {
  const get = (rest: string) => `GET / HTTP/1.1\r\n${rest}Connection: close\r\n\r\n`;
  const post = (rest: string, body = '{}') =>
    `POST /unload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${rest}\r\n${body}`;

  test.each([
    ['no Host at all', get(''), 403, 'forbidden_origin'],
    ['a Host that is no host name', get('Host: a b\r\n'), 403, 'forbidden_origin'],
    ['a Host that is no address', get('Host: 127.0.0.256\r\n'), 403, 'forbidden_origin'],
    [
      'an absolute address',
      'GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      403,
      'forbidden_origin',
    ],
    ['headers over the limit', get(`Host: localhost\r\nX: ${'x'.repeat(20_000)}\r\n`), 400, 'request_too_large'],
    ['a length that is no number', get('Host: localhost\r\nContent-Length: abc\r\n'), 400, 'malformed_json'],
    ['a method that is none', 'FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n', 400, 'malformed_json'],
    ['garbage', '\x16\x03\x01\r\n\r\n', 400, 'malformed_json'],
    [
      'a body longer than its length',
      'POST /unload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n{"a":1}',
      400,
      'malformed_json',
    ],
    // Request smuggling (RFC 9112, section 11.2): requests of which a proxy in front may see another end.
    ['a length and chunks', post('Content-Length: 3\r\nTransfer-Encoding: chunked\r\n'), 400, 'malformed_json'],
    ['two lengths', post('Content-Length: 2\r\nContent-Length: 3\r\n'), 400, 'malformed_json'],
    ['two lengths in one header', post('Content-Length: 2, 3\r\n'), 400, 'malformed_json'],
    ['a signed length', post('Content-Length: +2\r\n'), 400, 'malformed_json'],
    ['chunks that are not the last coding', post('Transfer-Encoding: chunked, gzip\r\n'), 400, 'malformed_json'],
    ['a coding behind a space', post('Transfer-Encoding : chunked\r\n'), 400, 'malformed_json'],
    [
      'a coding in another case, twice',
      post('Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n'),
      400,
      'malformed_json',
    ],
    ['a header in two lines', post('X: a\r\n Content-Length: 2\r\n'), 400, 'malformed_json'],
    [
      'a chunk of a size that is no number',
      post('Transfer-Encoding: chunked\r\n', '0x2\r\n{}\r\n0\r\n\r\n'),
      400,
      'malformed_json',
    ],
    ['a line feed alone in a header', post('X: a\nContent-Length: 2\r\n'), 400, 'malformed_json'],
    ['CONNECT', 'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n', 405, 'method_not_allowed'],
  ])('%s gets the error body, and the server lives on', async (_, text, status, code) => {
    const { url } = await start();
    const answer = await raw(url, text);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/^x-request-id: [0-9a-f-]{36}\r$/im);
    expect(JSON.parse(answer.slice(answer.lastIndexOf('\r\n\r\n')))).toMatchObject({ error: { code } });
    expect((await fetch(url)).status).toBe(200);
  });

  test('an unknown expectation is ignored', async () => {
    const { url } = await start();
    expect(await raw(url, get('Host: localhost\r\nExpect: foo\r\n'))).toMatch(/^HTTP\/1.1 200 /);
  });
});

describe('senders that never come to an end', () => {
  const limits = { headersTimeout: 500, requestTimeout: 1_000, connectionsCheckingInterval: 50 };
  const head = 'POST /unload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';

  test.each([
    ['headers', 'GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: '],
    ['a body shorter than its length', `${head}Content-Length: 100\r\n\r\n{`],
    ['a chunked body', `${head}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`],
  ])('%s: the connection is ended', async (_, text) => {
    const { backend, host } = await composeScripted()();
    const app = createApp({ backend, host, apis: ['models'] });
    const server = await startServer(app.fetch, { host: '127.0.0.1', port: 0, limits });
    expect(await raw(server.url, text)).toMatch(/^HTTP\/1.1 4\d\d /);
    // On a busy machine these limits may end a valid request too; one succeeds.
    await expect.poll(() => fetch(server.url).then(({ status }) => status, String)).toBe(200);
    await server.close(0);
  });
});

test('closes the connection of a refused caller that keeps its side open', async () => {
  const app = new Hono().get('/', (c) => c.text('here'));
  const limits = { headersTimeout: 200, requestTimeout: 300, connectionsCheckingInterval: 50 };
  const server = await startServer(app.fetch, { host: '127.0.0.1', port: 0, limits });
  const socket = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true }).resume();
  socket.write('GET / HTTP/1.1\r\nX-Slow: ');
  await new Promise((resolve) => socket.once('end', resolve));
  // It would be cut off at the end of the grace period, and `false` returned.
  expect(await server.close(30_000)).toBe(true);
  socket.destroy();
});

test.each([
  ['nothing', '', true],
  ['some headers', 'GET / HTTP/1.1\r\nX-Slow: ', true],
  ['a part of its body', 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{', false],
])('a caller that has sent %s does not keep the server from stopping', async (_, text, inTime) => {
  const app = new Hono().post('/', async (c) => c.text(await c.req.text()));
  const server = await startServer(app.fetch, { host: '127.0.0.1', port: 0 });
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => undefined);
  await new Promise<void>((sent) => socket.write(text, () => sent()));
  expect((await fetch(server.url)).status).toBe(404);
  // Without a time of their own, these connections would last as long as the grace period: longer than this test.
  expect(await server.close(600_000)).toBe(inTime);
});

test('requests that outlast the grace period are answered with the error that ends them', async () => {
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  const app = new Hono().all('/slow', async (c) => ((await c.req.text()) === 'none' ? c.text('') : ended.promise));
  app.onError((error) => errorResponse(error, 'models'));
  const server = await startServer(app.fetch, { host: '127.0.0.1', port: 0 });
  const answers = [fetch(`${server.url}/slow`)];
  const arriving = raw(server.url, 'POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{');
  await expect.poll(() => server.figures().open).toBe(2);
  const inTime = server.close(3_000, async () => ended.reject(new AssayError('engine_failed', 'Stopping.')));
  expect((await arriving).split('\r\n\r\n')[1]).toContain('shutting down');
  for (const answer of answers) expect(await (await answer).text()).toContain('"message":"Stopping."');
  expect(await inTime).toBe(false);
});

test('writes nothing into a response that has begun, nor instead of one that is due', async () => {
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  for (const [first, rest] of [
    ['/begun', `${get('/later')}garbage\r\n\r\n`],
    ['/later', 'garbage\r\n\r\n'],
  ] as const) {
    const [asked, refused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const chunks = async function* () {
      yield new TextEncoder().encode('a');
      asked.resolve();
      await refused.promise;
      yield new TextEncoder().encode('z');
    };
    const app = new Hono()
      .get('/begun', () => new Response(Readable.toWeb(Readable.from(chunks())) as ReadableStream))
      .get('/later', async () => {
        asked.resolve();
        await refused.promise;
        return new Response('late');
      });
    const server = await startServer(app.fetch, { host: '127.0.0.1', port: 0 });
    const answer = raw(server.url, get(first), async (socket) => {
      await asked.promise;
      await new Promise<void>((sent) => socket.write(rest, () => sent()));
      // The server is in this process: it reads the socket in the next turns of the event loop, on any machine.
      for (let turn = 0; turn < 100; turn++) await setImmediate();
      refused.resolve();
    });
    // The garbage is answered as a request of its own, after those before it.
    expect(await answer, first).toMatch(/late(HTTP\/1.1 400 [^{]*\{"error":[^}]*"malformed_json"\}\})?$/);
    await server.close(0);
  }
});

test('a caller who does not read loses the connection, and one who waits does not', async () => {
  const bytes = 64 * 1024 * 1024;
  const app = new Hono()
    .get('/large', () => new Response('x'.repeat(bytes)))
    .get('/slow', async () => {
      await delay(1_000);
      return new Response('late');
    });
  const server = await startServer(app.fetch, { host: '127.0.0.1', port: 0, limits: { unreadTimeout: 200 } });
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').pause();
  socket.write('GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect(await (await fetch(`${server.url}/slow`)).text()).toBe('late');
  const came = await new Promise<number>((resolve) => {
    const ended = () => resolve(socket.bytesRead);
    socket
      .on('data', () => socket.bytesRead > bytes && ended())
      .on('error', ended)
      .on('close', ended)
      .resume();
  });
  expect(came).toBeLessThan(bytes);
  socket.destroy();
  await server.close(0);
});

/** Sends raw text, lets `then` continue with the connection, and returns what is received until it ends. */
function raw(url: string, text: string, then?: (socket: Socket) => Promise<void>): Promise<string> {
  const { port } = new URL(url);
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(text));
    socket.setTimeout(30_000, () => socket.destroy(new Error(`nothing after 30 s: ${received}`)));
    socket.on('data', (data) => {
      received += data;
    });
    then?.(socket).catch(reject);
    // A reset may follow the received bytes.
    socket.on('error', (error) => (received === '' ? reject(error) : undefined)).on('close', () => resolve(received));
  });
}

describe('metrics', () => {
  const scrape = async (url: string, headers = {}) => (await fetch(`${url}/metrics`, { headers })).text();

  test('count refusals, connections and the requests of each key', async () => {
    const { url } = await start({ apiKey: KEY });
    await fetch(`${url}/nowhere`);
    await fetch(`${url}/v1/tasks`, { method: 'POST', body: '{}' });
    await fetch(`${url}/v1/tasks`, { method: 'POST', body: '{}', headers: { authorization: `Bearer ${KEY}` } });
    const text = await scrape(url);
    expect(text).toContain('assay_http_responses_total{route="none",status="404"} 1\n');
    expect(text).toContain('assay_http_responses_total{route="/v1/tasks",status="401"} 1\n');
    expect(text).toContain('assay_http_responses_total{route="/v1/tasks",status="400"} 1\n');
    expect(text).toContain('assay_key_requests_total{key="api-key",model="none"} 1\n');
    expect(text).toMatch(/^assay_connections [1-9]/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m);
    expect(text).toMatch(/^process_resident_memory_bytes [1-9]\d+$/m);
    if (process.platform === 'linux') expect(text).toMatch(/^process_open_fds [1-9]\d*$/m);
  });

  test('are in the OpenMetrics format for a scraper that asks for it', async () => {
    const { url } = await start();
    const response = await fetch(`${url}/metrics`, {
      headers: { accept: 'application/openmetrics-text; version=1.0.0' },
    });
    expect(response.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    const text = await response.text();
    expect(text).toMatch(/^# TYPE assay_http_responses counter$/m);
    expect(text).not.toMatch(/_total_total|\n\n|# TYPE \S+_total counter/);
    expect(text).toMatch(/\n# EOF\n$/);
    expect(await scrape(url)).toMatch(/^assay_http_responses_total\{route="\/metrics",status="200"\} 1$/m);
  });

  test('have a port of their own, without a key and with nothing else', async () => {
    const { url, said } = await start({ host: '0.0.0.0', apiKey: KEY, metricsPort: '0', metricsHost: '127.0.0.1' });
    const own = /Metrics, without a key: (\S+)\/metrics/.exec(said.join('\n'))?.[1] ?? '';
    expect(await scrape(own)).toContain('assay_connections');
    expect((await fetch(`${own}/health`)).status).toBe(404);
    expect((await fetch(`${own}/metrics`, { headers: { origin: 'https://evil.example' } })).status).toBe(403);
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
    expect((await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })).status).toBe(200);
  });
});

describe('the log', () => {
  const record = { requestId: 'r', method: 'POST', path: '/v1/tasks', status: 200, ms: 3 };
  function logged(...args: Parameters<ReturnType<typeof requestLog>>): Record<string, unknown> {
    let line = '';
    const log = pino({ base: null, timestamp: false }, { write: (text: string) => (line += text) });
    requestLog(log)(...args);
    return JSON.parse(line);
  }

  test('has one line for each request', () => {
    expect(logged({ event: 'request', ...record, key: 'ann' })).toEqual({
      level: 30,
      msg: 'request',
      ...record,
      key: 'ann',
    });
  });

  test("what is wrong with a caller's request is a code, without its words", () => {
    const error = new AssayError('invalid_value', 'secret', { cause: 'secret' });
    const line = logged({ event: 'request', ...record, status: 422, error });
    expect(line).toEqual({ level: 30, msg: 'request', ...record, status: 422, code: 'invalid_value' });
  });

  test('has a fault of the server with its cause', () => {
    const error = new AssayError('engine_failed', 'Sorry.', { cause: new Error('exit code 139') });
    const line = logged({ event: 'request', ...record, status: 500, error });
    expect(line).toMatchObject({ level: 50, code: 'engine_failed', err: { message: 'exit code 139' } });
  });
});
