import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { eventLoopUtilization } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { Hono } from 'hono';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Connections } from '../../adapters/node/connections.ts';
import { type RunningServer, startServer } from '../../adapters/node/server.ts';

/*
 * Clients that write to the socket themselves: many requests at once, in pieces of every size, and connections that
 * are held.
 */

const open: { server?: RunningServer; sockets: Socket[] } = { sockets: [] };
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of open.sockets.splice(0)) socket.destroy();
  await open.server?.close(0);
});

/** Serves an app that notes each request's path and body when it arrives, and answers after `next` allows it. */
async function start({ slow = false, most }: { slow?: boolean; most?: number } = {}) {
  const seen: string[] = [];
  let running = 0;
  let together = 0;
  const gate = { open: !slow };
  const app = new Hono().all('*', async (c) => {
    running++;
    together = Math.max(together, running);
    const body = await c.req.text();
    seen.push(`${c.req.path}${body}`);
    while (!gate.open) await delay(5);
    running--;
    return c.text(c.req.path);
  });
  open.server = await startServer(app.fetch, { host: '127.0.0.1', port: 0, ...(most ? { most } : {}) });
  return { seen, gate, most: () => together, server: open.server, port: Number(new URL(open.server.url).port) };
}

async function connected(port: number): Promise<{ socket: Socket; text(): string; ended: Promise<void> }> {
  const socket = connect(port, '127.0.0.1');
  open.sockets.push(socket);
  let received = '';
  socket.on('error', () => undefined).on('data', (data) => (received += data));
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()).once('close', () => resolve()));
  return { socket, text: () => received, ended };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const chunked = (path: string, ...chunks: string[]) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${[...chunks, ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}`;
const answers = (text: string) => text.match(/HTTP\/1.1 200 /g)?.length ?? 0;

const MIXED = [
  ['/a', get('/a')],
  ['/b{"x":"\n\r\n\r\n"}', post('/b', '{"x":"\n\r\n\r\n"}')],
  ['/c', post('/c', '')],
  ['/d\n\r\n\r\nGET /', chunked('/d', '\n\r\n', '\r\nGET /')],
  [`/e${'y'.repeat(3000)}`, chunked('/e', 'y'.repeat(3000))],
  ['/f', `\r\n${get('/f')}`],
  [`/g${'z'.repeat(100_000)}`, post('/g', 'z'.repeat(100_000))],
  ['/h', get('/h')],
] as const;

describe('pipelined requests', () => {
  test.each([1, 2, 3, 7, 100, 1000, 1_000_000])(
    'are served one after the other and in order, sent in pieces of %i bytes',
    async (size) => {
      const { seen, most, port } = await start();
      const { socket, text } = await connected(port);
      const bytes = Buffer.from(MIXED.map(([, request]) => request).join(''));
      for (let at = 0; at < bytes.length; at += size) {
        // Small pieces of the headers only: of the long body, each piece would be a system call.
        const length = at > 5000 ? bytes.length : size;
        await new Promise<void>((sent) => socket.write(bytes.subarray(at, at + length), () => sent()));
        if (length === bytes.length) break;
      }
      await expect.poll(() => answers(text())).toBe(MIXED.length);
      expect(seen).toEqual(MIXED.map(([came]) => came));
      expect(most()).toBe(1);
    },
  );

  test('behind an unanswered one are neither parsed nor read without end', async () => {
    const { seen, gate, server, port } = await start({ slow: true });
    const { socket, text } = await connected(port);
    const count = 3_000;
    socket.write(get('/n').repeat(count));
    await expect.poll(() => seen.length).toBe(1);
    // Other connections are served meanwhile.
    await connected(port).then(({ socket: other }) => other.write(get('/other')));
    await expect.poll(() => seen.length).toBe(2);
    expect(server.figures().open).toBe(2);
    gate.open = true;
    await expect.poll(() => answers(text()), { timeout: 20_000 }).toBe(count);
  });

  test.each([0, 20, 40, 60, 80])('with chunked bodies are bounded behind an unanswered one (%i)', async (more) => {
    // The parser alone knows where a chunked body ends, so a slice of it may end within a further request.
    const http = createServer();
    const connections = new Connections(http, () => undefined);
    http.listen(0, '127.0.0.1');
    onTestFinished(() => void http.close());
    await once(http, 'listening');
    const { socket } = await connected((http.address() as AddressInfo).port);
    socket.write(chunked(`/${'n'.repeat(more)}`, 'body').repeat(500));
    await expect.poll(() => connections.requests.length).toBeGreaterThan(0);
    await delay(20);
    expect(connections.requests.length).toBeLessThan(20);
  });

  test('of one slice are served in a turn of the event loop each', async () => {
    const turns: number[] = [];
    let turn = 0;
    const count = () => {
      turn++;
      if (turns.length < 100) setImmediate(count);
    };
    count();
    const http = createServer();
    new Connections(http, (_, response) => {
      turns.push(turn);
      response.end();
    });
    http.listen(0, '127.0.0.1');
    onTestFinished(() => void http.close());
    await once(http, 'listening');
    const { socket, text } = await connected((http.address() as AddressInfo).port);
    socket.write(chunked('/n', 'body').repeat(100));
    await expect.poll(() => answers(text())).toBe(100);
    expect(new Set(turns).size).toBe(100);
  });

  test('give way to new connections', async () => {
    // The clock stands still, so that new connections come first for as long as some arrive.
    vi.useFakeTimers({ toFake: ['performance'] });
    const { seen, port } = await start();
    const sender = await connected(port);
    const others = Array.from({ length: 100 }, () => connected(port).then(({ socket }) => socket.write(get('/new'))));
    sender.socket.write(get('/n').repeat(1000));
    await Promise.all(others);
    await expect.poll(() => seen.length, { timeout: 20_000 }).toBe(1100);
    const before = seen.slice(0, seen.lastIndexOf('/new')).filter((path) => path === '/n');
    expect(before.length).toBeLessThan(30);
  });

  test.each(['waits for an answer', 'is gone'])('cost no time while they wait and the client %s', async (client) => {
    const http = createServer();
    const asked: ServerResponse[] = [];
    // The first is answered, so that the server begins to read on.
    const connections = new Connections(http, (_, response) => asked.push(response) > 1 || response.end());
    http.listen(0, '127.0.0.1');
    onTestFinished(() => void http.close());
    await once(http, 'listening');
    const { socket } = await connected((http.address() as AddressInfo).port);
    socket.write(get('/n').repeat(10_000));
    await expect.poll(() => asked.length).toBe(2);
    if (client === 'is gone') {
      socket.resetAndDestroy();
      // The server reads nothing now, so it learns this from its next answer.
      asked[1]?.end();
      await expect.poll(() => connections.figures.open).toBe(0);
    }
    const before = eventLoopUtilization();
    await delay(300);
    expect(eventLoopUtilization(before).utilization).toBeLessThan(0.5);
  });

  test('of a client that leaves are not served', async () => {
    const { seen, gate, server, port } = await start({ slow: true });
    const { socket } = await connected(port);
    socket.write(get('/n').repeat(1000));
    await expect.poll(() => seen.length).toBe(1);
    socket.destroy();
    await expect.poll(() => server.figures().open).toBe(0);
    gate.open = true;
    await delay(20);
    expect(seen).toEqual(['/n']);
  });
});

test.each(['GET', 'POST'])('a body of %s that goes on after the answer ends the connection', async (method) => {
  open.server = await startServer(() => new Response('done'), { host: '127.0.0.1', port: 0 });
  const { socket, text, ended } = await connected(Number(new URL(open.server.url).port));
  socket.write(`${method} / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`);
  const more = setInterval(() => socket.write('1\r\nx\r\n'), 20);
  await ended;
  clearInterval(more);
  expect(answers(text())).toBe(1);
});

test.each(['x', ' ', '\n'])('other work has turns between short chunks of a body (%j)', async (byte) => {
  const chunks: number[] = [];
  let turn = 0;
  let over = false;
  const count = () => {
    turn++;
    if (!over) setImmediate(count);
  };
  count();
  const http = createServer();
  new Connections(http, (request, response) => {
    request.on('data', () => (chunks[turn] = (chunks[turn] ?? 0) + 1)).on('end', () => response.end());
  });
  http.listen(0, '127.0.0.1');
  onTestFinished(() => {
    over = true;
    http.close();
  });
  await once(http, 'listening');
  const { socket, text } = await connected((http.address() as AddressInfo).port);
  socket.write(chunked('/n', ...Array<string>(5_000).fill(byte)));
  await expect.poll(() => answers(text())).toBe(1);
  expect(chunks.reduce((sum, inTurn) => sum + inTurn)).toBe(5_000);
  expect(Math.max(...chunks.filter((inTurn) => inTurn !== undefined))).toBeLessThan(300);
});

test('a body that comes after the answer is read in turns with other work', async () => {
  let served: Socket | undefined;
  let [before, most] = [0, 0];
  const look = () => {
    const read = served?.bytesRead ?? 0;
    if (before > 0) most = Math.max(most, read - before);
    before = read;
    if (!served?.destroyed) setImmediate(look);
  };
  const http = createServer();
  new Connections(http, (request, response) => {
    served = request.socket;
    response.end('done');
  });
  http.listen(0, '127.0.0.1');
  onTestFinished(() => void http.close());
  await once(http, 'listening');
  const { socket, text, ended } = await connected((http.address() as AddressInfo).port);
  look();
  socket.write(post('/n', 'x'.repeat(20_000_000)));
  await expect.poll(() => answers(text())).toBe(1);
  await Promise.race([ended, expect.poll(() => before, { timeout: 5_000 }).toBeGreaterThan(20_000_000)]);
  socket.destroy();
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(300_000);
});

describe('when all connections are in use', () => {
  test('the one that has been idle longest gives way, and running requests stay', async () => {
    const { seen, gate, server, port } = await start({ slow: true, most: 5 });
    const busy = await connected(port);
    busy.socket.write(get('/busy'));
    await expect.poll(() => seen).toEqual(['/busy']);
    const idle = [];
    for (let one = 0; one < 10; one++) idle.push(await connected(port));
    expect(server.figures()).toMatchObject({ most: 5 });
    expect(server.figures().open).toBeLessThan(5);
    expect(server.figures().evicted).toBeGreaterThan(5);
    gate.open = true;
    await expect.poll(() => answers(busy.text())).toBe(1);
    const last = idle.at(-1);
    last?.socket.write(get('/last'));
    await expect.poll(() => answers(last?.text() ?? '')).toBe(1);
  });

  test('one whose body does not come gives way, if no other is idle', async () => {
    const { seen, most, port } = await start({ most: 4 });
    const half = post('/half', 'body').slice(0, -1);
    const senders = [];
    for (let one = 0; one < 3; one++) {
      senders.push(await connected(port));
      senders.at(-1)?.socket.write(half);
    }
    await expect.poll(most).toBe(3);
    const fresh = await connected(port);
    fresh.socket.write(get('/new'));
    await expect.poll(() => answers(fresh.text())).toBe(1);
    await senders[0]?.ended;
    senders[2]?.socket.write('y');
    await expect.poll(() => seen).toEqual(['/new', '/halfbody']);
  });

  test('a new one is refused if no other is idle, and one address leaves a quarter to others', async () => {
    const { seen, server, port } = await start({ slow: true, most: 8 });
    for (let one = 1; one <= 6; one++) {
      (await connected(port)).socket.write(get(`/${one}`));
      await expect.poll(() => seen.length).toBe(one);
    }
    await (await connected(port)).ended;
    expect(server.figures().refused).toBe(1);
    const elsewhere = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
    open.sockets.push(elsewhere);
    elsewhere.write(get('/elsewhere'));
    await expect.poll(() => seen).toContain('/elsewhere');
  });
});
