import type dns from 'node:dns';
import { createServer, get, type RequestListener } from 'node:http';
import type https from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createImageFetcher, type FetcherOptions } from './fetch-image.ts';

type Answers = readonly string[];

/** Returns a lookup that resolves every name to the next of the lists at each call, and then always to the last one. */
function resolving(...lists: Answers[]): { lookup: typeof dns.lookup; calls(): number } {
  let calls = 0;
  const lookup = (_name: string, _options: object, callback: (error: null, found: object[]) => void) => {
    const list = lists[Math.min(calls++, lists.length - 1)] ?? [];
    callback(
      null,
      list.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return { lookup: lookup as unknown as typeof dns.lookup, calls: () => calls };
}

/** Starts a web server on this machine. Requests for https URLs reach it over http. */
async function listening(answer: RequestListener): Promise<{ request: typeof https.get; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.headers.host}${request.url}`);
    answer(request, response);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.closeAllConnections());
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const request = (url: URL, options: object, onResponse: (response: never) => void) => {
    const here = new URL(url);
    here.protocol = 'http:';
    here.port = String(port);
    return get(here, options, onResponse as never);
  };
  return { request: request as typeof https.get, asked };
}

const HOSTS = ['images.example.com', '*.example.org'];
const here = resolving(['127.0.0.1']).lookup;

async function fetched(url: string, options: Partial<FetcherOptions> = {}, maxBytes = 1000): Promise<string> {
  const { request } = options.request ? { request: options.request } : await listening((_, r) => void r.end('a file'));
  // The test's own server has a private address, which `isPublic` must accept.
  const fetcher = createImageFetcher({ hosts: HOSTS, lookup: here, isPublic: () => true, ...options, request });
  try {
    return Buffer.from(await fetcher.fetch(url, { bytes: maxBytes }, new AbortController().signal)).toString();
  } catch (error) {
    return (error as { kind: string }).kind;
  }
}

describe('allowed hosts', () => {
  it.each([
    ['https://images.example.com/a.png', 'a file'],
    ['https://images.example.com:443/a.png', 'a file'],
    ['HTTPS://IMAGES.EXAMPLE.COM/a.png', 'a file'],
    ['https://images.example.com./a.png', 'a file'],
    ['https://a.b.example.org/', 'a file'],
    ['https://example.org/', 'address_host'],
    ['https://evilexample.org/', 'address_host'],
    ['https://images.example.com.evil.test/', 'address_host'],
    ['https://evil.test/images.example.com', 'address_host'],
    ['https://images.example.com@evil.test/', 'address_scheme'],
    ['https://user:word@images.example.com/', 'address_scheme'],
    ['https://images.example.com:8443/', 'address_scheme'],
    ['http://images.example.com/', 'address_scheme'],
    ['ftp://images.example.com/', 'address_scheme'],
    ['file:///etc/passwd', 'address_scheme'],
    ['nonsense', 'address_scheme'],
  ])('%s: %s', async (url, expected) => {
    expect(await fetched(url)).toBe(expected);
  });
});

/** Addresses of this machine, its network and a cloud's metadata service, in all spellings. */
const PRIVATE = [
  '127.0.0.1',
  '2130706433',
  '0x7f.1',
  '127.1',
  '017700000001',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '0.0.0.0',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '169.254.169.254',
  '10.0.0.1.',
];

describe('addresses that are not public, also where their host is allowed', () => {
  it.each(PRIVATE)('%s', async (host) => {
    const { request, asked } = await listening((_, response) => void response.end('secret'));
    const hosts = [host, new URL(`https://${host}/`).hostname];
    const { isPublicAddress: isPublic } = await import('../../hub/public-address.ts');
    expect(await fetched(`https://${host}/`, { hosts, request, isPublic })).toBe('address_private');
    expect(asked).toEqual([]);
  });

  it.each<[string, Answers[]]>([
    ['a private address', [['10.0.0.1']]],
    ['this machine', [['::1']]],
    ['a public and a private address', [['93.184.215.14', '192.168.0.1']]],
    ['no address', [[]]],
    ['a private address first, a public one later', [['127.0.0.1'], ['93.184.215.14']]],
  ])('a name with %s', async (_, lists) => {
    const { request, asked } = await listening((_, response) => void response.end('secret'));
    const { isPublicAddress: isPublic } = await import('../../hub/public-address.ts');
    const { lookup, calls } = resolving(...lists);
    expect(await fetched('https://images.example.com/', { request, lookup, isPublic })).toBe('address_private');
    expect([asked, calls()]).toEqual([[], 1]);
  });

  it('the address that was checked is the one that is dialled: a name is resolved once', async () => {
    const { request, asked } = await listening((_, response) => void response.end('a file'));
    const { lookup, calls } = resolving(['127.0.0.1'], ['127.0.0.2']);
    expect(await fetched('https://images.example.com/', { request, lookup })).toBe('a file');
    expect([asked.length, calls()]).toEqual([1, 1]);
  });
});

describe('answers', () => {
  it.each<[string, RequestListener, string]>([
    [
      'a redirect',
      (_, r) => void r.writeHead(302, { location: 'https://images.example.com/b' }).end(),
      'address_redirect',
    ],
    ['not found', (_, r) => void r.writeHead(404).end('no'), 'address_status'],
    ['no content', (_, r) => void r.writeHead(204).end(), 'address_status'],
    ['too many bytes', (_, r) => void r.end('x'.repeat(1001)), 'address_large'],
    ['bytes without end', (_, r) => void setInterval(() => r.write('x'.repeat(100)), 1), 'address_large'],
    ['no answer', () => {}, 'address_slow'],
    ['an answer without end', (_, r) => void r.write('x'), 'address_slow'],
    ['a broken connection', (q) => void q.socket.destroy(), 'address_unreachable'],
  ])('%s', async (_, answer, expected) => {
    const { request } = await listening(answer);
    // A busy machine may need more than this for all other answers.
    const timeout = expected === 'address_slow' ? { timeoutMs: 300 } : {};
    expect(await fetched('https://images.example.com/', { request, ...timeout })).toBe(expected);
  });
});

it('fetches at the same time share the budget of their request', async () => {
  const { request } = await listening((_, response) => void response.end('x'.repeat(600)));
  const fetcher = createImageFetcher({ hosts: HOSTS, lookup: here, isPublic: () => true, request });
  const budget = { bytes: 1000 };
  const fetches = [1, 2].map(() =>
    fetcher.fetch('https://images.example.com/', budget, new AbortController().signal).then(
      ({ length }) => length,
      ({ kind }) => kind,
    ),
  );
  expect((await Promise.all(fetches)).sort()).toEqual([600, 'address_large']);
});

it('rejects for a refused address, instead of throwing at once', async () => {
  const fetcher = createImageFetcher({ hosts: HOSTS });
  const kind = fetcher.fetch('http://images.example.com/', { bytes: 1 }, new AbortController().signal).then(
    () => 'fetched',
    (error) => error.kind,
  );
  expect(await kind).toBe('address_scheme');
});
