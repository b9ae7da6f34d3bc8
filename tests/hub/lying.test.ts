import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import { testHost } from '../registry/machine.ts';
import { HubServer } from './hub-server.ts';
import { type Answer, DIRECTORY, endless, endlessPages, lieAboutFiles, trickle } from './lies.ts';
import { machine, randomModel } from './pull.ts';

let hub: HubServer;

beforeEach(async () => {
  hub = await HubServer.start(randomModel(), randomModel({ id: 'acme/gated', access: 'gated' }));
});
afterEach(() => hub.stop());

/** Returns the peak growth of this process's resident memory while `work` runs, in bytes. */
async function memoryGained(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage.rss();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 5);
  await work().finally(() => clearInterval(watch));
  return most - before;
}

describe('a listing', () => {
  it.each<[string, Answer, RegExp]>([
    ['of compressed spaces without end', endless(' '.repeat(1 << 20), { gzip: true }), /longer than 16 MiB/],
    ['of entries without end', endless(`${JSON.stringify(DIRECTORY)},`, { begin: '[' }), /longer than 16 MiB/],
    ['of 5 MB of brackets', (_, response) => void response.end('['.repeat(5_000_000)), /does not answer like a hub/],
    ['that is no array', (_, response) => void response.end('{"a":1}'), /does not answer like a hub/],
    ['whose entries are null', (_, response) => void response.end('[null]'), /does not answer like a hub/],
  ])('%s is refused, at the cost of little memory', async (_name, answer, message) => {
    lieAboutFiles(hub, answer);
    const box = await machine(hub);
    const gained = await memoryGained(() =>
      expect(box.pull()).rejects.toMatchObject({
        code: 'hub_unreachable',
        message: expect.stringMatching(message),
      }),
    );
    expect(gained).toBeLessThan(256 * 1024 * 1024);
    expect(hub.requests.filter(({ path }) => path === 'tree')).toHaveLength(1);
  });

  it.each([
    ['directories', [DIRECTORY]],
    ['nothing', []],
  ])('of pages of %s without end is refused', async (_name, page) => {
    let pages = 0;
    const onPage = () => {
      pages += 1;
    };
    lieAboutFiles(hub, endlessPages(hub, page, { onPage }));
    const box = await machine(hub);
    await expect(box.pull()).rejects.toMatchObject({
      code: 'hub_unreachable',
      message: expect.stringMatching(/pages/),
    });
    expect(pages).toBeLessThanOrEqual(1_000);
  });

  it('of too many directories is refused', async () => {
    lieAboutFiles(hub, (_request, response) => void response.end(JSON.stringify(Array(20_001).fill(DIRECTORY))));
    await expect((await machine(hub)).pull()).rejects.toThrow(/more than 20000 entries/);
  });

  it('that trickles in is given up', async () => {
    lieAboutFiles(hub, trickle);
    const box = await machine(hub, { settings: { listingMs: 300 } });
    await expect(box.pull()).rejects.toMatchObject({
      code: 'hub_unreachable',
      message: expect.stringMatching(/took longer than/),
    });
  });
});

describe('the token', () => {
  /** Starts a server of another origin that records what it receives. */
  async function stranger(): Promise<{ origin: string; seen: IncomingMessage[] }> {
    const seen: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      seen.push(request);
      response.end('[]');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
  }

  it('does not follow the next page to another origin', async () => {
    const other = await stranger();
    lieAboutFiles(hub, (_request, response) => {
      response.setHeader('Link', `<${other.origin}/page2>; rel="next"`);
      response.end('[]');
    });
    const box = await machine(hub, { hub: { token: hub.token } });
    await expect(box.pull()).rejects.toThrow(/next page.*another server/);
    expect(other.seen).toEqual([]);
  });

  it.each(['api', 'resolve'] as const)('does not follow a redirect of %s, there or back', async (on) => {
    const other = await stranger();
    const location = `${other.origin}/elsewhere`;
    hub.fail({ on, fault: { kind: 'status', status: 302, headers: { location } } });
    const box = await machine(hub, { hub: { token: hub.token } });
    await expect(box.pull({}, parseModelId('acme/gated'))).rejects.toBeDefined();
    expect(other.seen.length).toBeGreaterThan(0);
    expect(other.seen.map(({ headers }) => headers.authorization)).toEqual(other.seen.map(() => undefined));
  });

  it('stays away once a redirect has left the hub, also when the next one returns', async () => {
    const back = createServer((_request, response) => response.writeHead(302, { location: hub.endpoint }).end());
    await new Promise<void>((resolve) => back.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void back.close());
    const location = `http://127.0.0.1:${(back.address() as AddressInfo).port}`;
    hub.fail({ on: 'api', times: 1, fault: { kind: 'status', status: 302, headers: { location } } });
    const box = await machine(hub, { hub: { token: hub.token } });
    await expect(box.pull()).rejects.toBeDefined();
    expect(hub.requests.slice(0, 2).map(({ authorization }) => authorization)).toEqual([`Bearer ${hub.token}`, null]);
  });
});

describe('a redirect', () => {
  it('in a circle ends', async () => {
    hub.fail({ on: 'api', fault: { kind: 'status', status: 302, headers: { location: `${hub.endpoint}/again` } } });
    const box = await machine(hub);
    await expect(box.pull()).rejects.toThrow(/redirects too often/);
    expect(hub.requests.length).toBeLessThan(10);
  });

  it.each(['http://127.0.0.1:1/', 'http://[::1]/', 'http://169.254.169.254/latest/meta-data/', 'file:///etc/passwd'])(
    'of a public hub to %s is refused',
    async (location) => {
      const asked: string[] = [];
      const publicHub: typeof fetch = async (url, init) => {
        asked.push(String(url));
        return fetch(String(url).replace('http://hub.example', hub.endpoint), init);
      };
      hub.fail({ on: 'api', fault: { kind: 'status', status: 302, headers: { location } } });
      const changes = { fetch: publicHub, endpoint: 'http://hub.example', addressesOf: async () => ['93.184.215.14'] };
      const box = await machine(hub, { hub: changes });
      await expect(box.pull()).rejects.toMatchObject({
        code: 'hub_unreachable',
        message: expect.stringMatching(/redirects to .*(private|http)/),
      });
      expect(asked.map((url) => new URL(url).origin)).toEqual(['http://hub.example']);
    },
  );
});

describe('a server whose caller has left', () => {
  const MODEL_ID = parseModelId('acme/tiny');

  /** Answers each page with a further one; reports how many pages the hub sent. */
  function manyPages(): () => number {
    let pages = 0;
    const onPage = () => {
      pages += 1;
    };
    lieAboutFiles(hub, endlessPages(hub, [], { delayMs: 20, onPage }));
    return () => pages;
  }

  it('reads no list of files to its end', async () => {
    const pages = manyPages();
    const box = await testHost(hub, {}, { unfollowedMs: 50 });
    const leaving = new AbortController();
    const events = box.host.download(MODEL_ID, { allowDownload: true }, leaving.signal)[Symbol.asyncIterator]();
    const first = events.next();
    await expect.poll(pages).toBeGreaterThan(2);
    leaving.abort(new Error('gone'));
    await expect(first).rejects.toThrow('gone');
    await expect.poll(() => box.host.listModels()).toEqual([expect.objectContaining({ id: 'assay/tiny' })]);
    // One request may still be on its way.
    await sleep(100);
    const asked = pages();
    await sleep(200);
    expect(pages()).toBe(asked);
  });

  it('ends at once when it is closed', async () => {
    const pages = manyPages();
    const box = await testHost(hub);
    const download = box.download(MODEL_ID).catch((error: Error) => error.message);
    await expect.poll(pages).toBeGreaterThan(2);
    await box.host.close();
    expect(await download).toBe('The server is shutting down. Start it again, then repeat the request.');
  });
});
