import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { readJson } from '../../lib/json/body.ts';
import { BodyBudget } from '../../lib/json/body-budget.ts';
import { NODE_DECODERS, turns } from './serve.ts';

const LIMIT = 256 * 1024;
const brotli = (text: string | Buffer) => brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 3 } });
const packers = { zstd: zstdCompressSync, gzip: gzipSync, deflate: deflateSync, br: brotli } as const;
const names = Object.keys(packers) as (keyof typeof packers)[];

function read(encoding: string, bytes: Uint8Array, { budget = 2 ** 30, maxBytes = 2 ** 30 } = {}): Promise<unknown> {
  const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
  const body = new Uint8Array(bytes);
  const request = new Request('http://localhost/', { method: 'POST', body, headers, duplex: 'half' } as RequestInit);
  const share = new BodyBudget(budget).share();
  return readJson(request, { contentType: 'required', share, maxBytes, decoders: NODE_DECODERS });
}
/** JSON text that shrinks only a little. */
const noise = (length: number) =>
  JSON.stringify(
    Array.from({ length: length / 20 }, (_, i) => Math.sin(i) * 1e9)
      .join(' ')
      .slice(0, length - 2),
  );

describe.each(names)('%s', (name) => {
  const pack = packers[name];

  test('is decoded', async () => {
    const value = { text: 'naïve 😀 '.repeat(1000), n: [1, 2.5, null] };
    expect(await read(name, pack(JSON.stringify(value)))).toEqual(value);
    expect(await read(name.toUpperCase(), pack('{}'))).toEqual({});
  });

  test('the limit counts decoded bytes', async () => {
    const text = noise(LIMIT);
    const limit = { maxBytes: text.length };
    expect(await read(name, pack(text), limit)).toHaveLength(text.length - 2);
    const longer = read(name, pack(`${text} `), limit);
    await expect(longer).rejects.toMatchObject({ code: 'request_too_large', message: expect.stringMatching(/bytes/) });
  });

  test('a bomb is refused for its ratio, long before the limit', async () => {
    const bomb = pack(Buffer.alloc(16 * 1024 * 1024, 0x20));
    await expect(read(name, bomb)).rejects.toMatchObject({
      code: 'request_too_large',
      message: expect.stringMatching(/256 times/),
    });
  });

  test('the budget counts decoded bytes', async () => {
    await expect(read(name, pack(noise(LIMIT)), { budget: 1000 })).rejects.toMatchObject({ code: 'overloaded' });
  });

  test.each([
    ['cut', (bytes: Buffer) => bytes.subarray(0, bytes.length - 9)],
    ['not compressed at all', () => Buffer.from('{"a":1}')],
  ])('%s: refused as malformed', async (_, spoil) => {
    await expect(read(name, spoil(pack(noise(10_000))))).rejects.toMatchObject({ code: 'malformed_json' });
  });
});

test('zstd with a window of more than 8 MiB is refused', async () => {
  const params = { [constants.ZSTD_c_windowLog]: 25, [constants.ZSTD_c_enableLongDistanceMatching]: 1 };
  const wide = zstdCompressSync(noise(16 * 1024 * 1024), { params });
  await expect(read('zstd', wide)).rejects.toMatchObject({ code: 'malformed_json' });
});

test.each(['compress', 'gzip, br', 'x', '__proto__'])('the encoding %s is not known', async (name) => {
  await expect(read(name, Buffer.from('{}'))).rejects.toMatchObject({
    code: 'unsupported_media_type',
    message: expect.stringMatching(/zstd, gzip, deflate, br/),
  });
});

test('callers have turns to work, the one that has used least first, and other work has as much time', async () => {
  const turn = turns();
  const order: string[] = [];
  let others = 0;
  const other = () => {
    others++;
    if (order.length < 5) setImmediate(other);
  };
  const work = async (caller: string, name: string) => {
    await turn(caller);
    order.push(name);
    for (const end = performance.now() + 5; performance.now() < end; );
  };
  setImmediate(other);
  const all = ['a1', 'a2', 'a3', 'a4'].map((name) => work('ann', name));
  await Promise.all([...all, work('bob', 'b')]);
  expect(order).toEqual(['a1', 'b', 'a2', 'a3', 'a4']);
  // Without a rest, it has one turn after each.
  expect(others).toBeGreaterThan(40);
});

test.each([
  ['a body of 16 KiB is parsed at once', 16 * 1024, 0],
  ['a longer one in a turn', 16 * 1024 + 1, 1],
  ['one of more than 1 MiB in two turns: to be parsed, and to be validated', 1024 * 1024 + 1, 2],
])('%s', async (_, bytes, expected) => {
  const turn = vi.fn(async () => undefined);
  const share = new BodyBudget(2 ** 30).share();
  const headers = { 'content-type': 'application/json' };
  const body = '"x"'.padEnd(bytes);
  const request = new Request('http://localhost/', { method: 'POST', headers, body });
  expect(await readJson(request, { contentType: 'required', share, turn })).toBe('x');
  expect(turn).toHaveBeenCalledTimes(expected);
});
