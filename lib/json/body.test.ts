import { afterEach, describe, expect, test } from 'vitest';
import { BodyBytes, MAX_BODY_BYTES, readJson } from './body.ts';
import { BodyBudget } from './body-budget.ts';

const post = (body: RequestInit['body'], headers: Record<string, string> = { 'content-type': 'application/json' }) =>
  new Request('http://localhost/', { method: 'POST', body: body ?? null, headers, duplex: 'half' } as RequestInit);

const share = new BodyBudget(MAX_BODY_BYTES).share();
afterEach(() => share.release());
const read = (request: Request, maxBytes?: number) =>
  readJson(request, { contentType: 'optional', share, ...(maxBytes === undefined ? {} : { maxBytes }) });

function chunked(chunks: readonly string[]): ReadableStream<Uint8Array> {
  const pieces = chunks.map((chunk) => new TextEncoder().encode(chunk));
  return new ReadableStream({
    pull(controller) {
      const next = pieces.shift();
      if (next) controller.enqueue(next);
      else controller.close();
    },
  });
}

describe('content type', () => {
  test.each([
    ['application/json', true],
    ['Application/JSON; charset=utf-8', true],
    ['application/json;charset="UTF-8"', true],
    ['application/problem+json', true],
    ['text/json', true],
    ['application/json; charset=latin1', false],
    ['text/plain', false],
    ['application/x-www-form-urlencoded', false],
    ['multipart/form-data; boundary=x', false],
    ['json', false],
    ['', false],
  ])('%s', async (type, accepted) => {
    const answer = read(post('{}', { 'content-type': type }));
    if (accepted) await expect(answer).resolves.toEqual({});
    else await expect(answer).rejects.toMatchObject({ code: 'unsupported_media_type' });
  });

  test('may be absent on the decision service, but not on the model server', async () => {
    const untyped = () => post(chunked(['{}']), {});
    await expect(readJson(untyped(), { contentType: 'optional', share })).resolves.toEqual({});
    await expect(readJson(untyped(), { contentType: 'required', share })).rejects.toMatchObject({
      code: 'unsupported_media_type',
    });
  });

  test('a body in an encoding that is not known is refused', async () => {
    const request = post('{}', { 'content-type': 'application/json', 'content-encoding': 'zstd' });
    await expect(read(request)).rejects.toMatchObject({ code: 'unsupported_media_type' });
  });
});

describe('size', () => {
  test('counts bytes, not characters', async () => {
    await expect(read(post('{"a":"é"}'), 10)).resolves.toEqual({ a: 'é' });
    await expect(read(post('{"a":"é"}'), 9)).rejects.toMatchObject({ code: 'request_too_large' });
  });

  test('counts all chunks, across the cut of a character', async () => {
    await expect(read(post(chunked(['{"a"', ':', '1}'])), 7)).resolves.toEqual({ a: 1 });
    await expect(read(post(chunked(['{"a"', ':', '1}'])), 6)).rejects.toMatchObject({ code: 'request_too_large' });
    const [first, second] = [new Uint8Array([0x22, 0xc3]), new Uint8Array([0xa9, 0x22])];
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(first);
        controller.enqueue(second);
        controller.close();
      },
    });
    await expect(read(post(stream))).resolves.toBe('é');
  });

  test('20 MiB exactly passes, one byte more does not', async () => {
    const limit = 20 * 1024 * 1024;
    const text = (length: number) => `"${'a'.repeat(length - 2)}"`;
    await expect(read(post(text(limit)))).resolves.toHaveLength(limit - 2);
    await expect(read(post(text(limit + 1)))).rejects.toMatchObject({ code: 'request_too_large' });
  });

  test.each([
    ['2', 'is refused, because it is longer than that', true],
    ['7', 'is refused, but read to its end first: its sender must see the answer', true],
    ['12', 'is read first, too: it is twice as long as allowed', true],
    ['13', 'is not read: it is longer still', false],
  ])('a body that announces %s bytes of 6 %s', async (announced, _, bodyUsed) => {
    const headers = { 'content-type': 'application/json', 'content-length': announced };
    const request = post(chunked(['{"a":1}']), headers);
    await expect(read(request, 6)).rejects.toMatchObject({ code: 'request_too_large' });
    expect(request.bodyUsed).toBe(bodyUsed);
  });

  test('announced bytes do not use the budget', async () => {
    const budget = new BodyBudget(MAX_BODY_BYTES);
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const sender = writable.getWriter();
    void sender.write(new Uint8Array([0x22]));
    const headers = { 'content-type': 'application/json', 'content-length': String(MAX_BODY_BYTES) };
    const slow = readJson(post(readable, headers), { contentType: 'required', share: budget.share() });
    const text = `"${'a'.repeat(1024 * 1024)}"`;
    await expect(readJson(post(text), { contentType: 'required', share: budget.share() })).resolves.toHaveLength(
      text.length - 2,
    );
    void sender.abort(new Error('closed'));
    await expect(slow).rejects.toMatchObject({ code: 'malformed_json' });
  });

  test('a body beyond the budget is read to its end before it is refused, and frees its share', async () => {
    const budget = new BodyBudget(128 * 1024);
    const share = budget.share();
    const chunks = Array.from({ length: 64 }, () => ' '.repeat(64 * 1024));
    let ended = false;
    const flush = () => {
      ended = true;
    };
    const body = chunked(chunks).pipeThrough(new TransformStream({ flush }));
    await expect(readJson(post(body), { contentType: 'optional', share })).rejects.toMatchObject({
      code: 'overloaded',
    });
    expect(ended).toBe(true);
    budget.share().take(192 * 1024);
  });

  test('stops reading a body that never ends, and cancels it', async () => {
    let sent = 0;
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent++;
        controller.enqueue(new Uint8Array(1000).fill(0x20));
      },
      cancel() {
        cancelled = true;
      },
    });
    await expect(read(post(endless), 10_000)).rejects.toMatchObject({ code: 'request_too_large' });
    expect(cancelled).toBe(true);
    expect(sent).toBeLessThan(20);
  });
});

describe('a body that cannot be read', () => {
  test('none at all', async () => {
    const request = new Request('http://localhost/', { method: 'POST' });
    await expect(read(request)).rejects.toMatchObject({ code: 'malformed_json' });
  });

  test('one that breaks off', async () => {
    const broken = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.error(new Error('socket closed'));
      },
    });
    await expect(read(post(broken))).rejects.toMatchObject({ code: 'malformed_json' });
  });
});

const KIB = 1024;

test.each([
  { sizes: [] },
  { sizes: [0] },
  { sizes: [3] },
  { sizes: [20 * KIB] },
  { sizes: [1, 1, 1] },
  { sizes: [8 * KIB - 1, 8 * KIB, 8 * KIB - 1, 1] },
  { sizes: [5, 20 * KIB, 0, 7, 9 * KIB, 3] },
  { sizes: Array.from({ length: 50 }, () => 1000) },
])('joins chunks of $sizes bytes in order', ({ sizes }) => {
  const bytes = new BodyBytes();
  const chunks = sizes.map((size, i) => new Uint8Array(size).fill(i + 1));
  for (const chunk of chunks) bytes.push(chunk);
  expect(Buffer.compare(bytes.joined(), Buffer.concat(chunks))).toBe(0);
});

test('holds the bytes of short chunks, not the chunks', () => {
  const bytes = new BodyBytes();
  const chunk = new Uint8Array(1);
  for (let i = 0; i < 40 * KIB; i++) bytes.push(chunk.fill(i % 256));
  expect(bytes.joined()).toEqual(Uint8Array.from({ length: 40 * KIB }, (_, i) => i % 256));
});

test('holds nothing after clear', () => {
  const bytes = new BodyBytes();
  bytes.push(new Uint8Array(9 * KIB));
  bytes.push(new Uint8Array(9));
  bytes.clear();
  bytes.push(Uint8Array.of(7));
  expect(bytes.joined()).toEqual(Uint8Array.of(7));
});
