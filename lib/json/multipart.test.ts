import { describe, expect, test } from 'vitest';
import { boundaryOf, parseMultipart } from './multipart.ts';

const image = new Uint8Array([0x89, 0x50, 0x0d, 0x0a, 0x2d, 0x2d, 0x62, 0xff]);
const request = (assets: unknown) => JSON.stringify({ state: 'x', assets });

/** Writes a body as the platform's form does, so that both sides are not ours. */
async function form(parts: readonly (readonly [name: string, value: string | Uint8Array, type?: string])[]) {
  const data = new FormData();
  for (const [name, value, type] of parts) {
    data.append(name, new Blob([value as BlobPart], type ? { type } : {}), `${name}.bin`);
  }
  const response = new Response(data);
  return [new Uint8Array(await response.arrayBuffer()), boundaryOf(response.headers.get('content-type'))!] as const;
}

test.each([
  ['multipart/form-data; boundary=abc', 'abc'],
  ['Multipart/Form-Data;charset=utf-8; boundary="a b;c"', 'a b;c'],
  ['multipart/form-data', undefined],
  ['multipart/form-data; boundary=', undefined],
  [`multipart/form-data; boundary=${'a'.repeat(71)}`, undefined],
  ['multipart/mixed; boundary=abc', undefined],
  ['application/json', undefined],
  [null, undefined],
])('the boundary of %s is %s', (type, boundary) => {
  expect(boundaryOf(type)).toBe(boundary);
});

describe('a body in parts', () => {
  test('gives assets the bytes of the parts that they name', async () => {
    const [bytes, boundary] = await form([
      ['request', request({ photo: { type: 'image', part: 'asset-0' }, other: { data_base64: 'AAAA' } })],
      ['asset-0', image, 'image/png'],
    ]);
    expect(parseMultipart(bytes, boundary)).toEqual({
      state: 'x',
      assets: {
        photo: { type: 'image', part: 'asset-0', base64: 'iVANCi0tYv8=', content_type: 'image/png' },
        other: { data_base64: 'AAAA' },
      },
    });
  });

  test.each([1, 2, 3, 100_000])('may have a part of %i bytes', async (length) => {
    const large = Uint8Array.from({ length }, (_, i) => i % 251);
    const [bytes, boundary] = await form([
      ['request', request({ a: { part: 'b' } })],
      ['b', large, 'image/png'],
    ]);
    const { assets } = parseMultipart(bytes, boundary) as { assets: { a: { base64: string } } };
    expect(assets.a.base64).toBe(Buffer.from(large).toString('base64'));
  });

  const text = (body: string) => new TextEncoder().encode(body.replaceAll('\n', '\r\n'));
  const part = (headers: string, body: string) => `--b\n${headers}\n\n${body}\n`;
  const named = (name: string, body = '{}') => part(`Content-Disposition: form-data; name="${name}"`, body);

  test('may have a preamble, padding and any header names', () => {
    const body = `hello\n--b \t\nCONTENT-DISPOSITION: form-data;name=request\n\n{"a":1}\n--b--\nbye`;
    expect(parseMultipart(text(body), 'b')).toEqual({ a: 1 });
  });

  test.each([
    ['nothing', '', 'malformed_json'],
    ['another boundary', '--c\nContent-Disposition: form-data; name="request"\n\n{}\n--c--', 'malformed_json'],
    ['no end', named('request'), 'malformed_json'],
    ['no request', `${named('other')}--b--`, 'malformed_json'],
    ['no JSON', `${named('request', '{')}--b--`, 'malformed_json'],
    ['a part without a name', `${part('Content-Type: a/b', '{}')}--b--`, 'malformed_json'],
    ['a part without headers', `--b\n{}\n--b--`, 'malformed_json'],
    ['long headers', `${part(`X: ${'a'.repeat(5000)}`, '{}')}--b--`, 'malformed_json'],
    [
      'a transfer encoding',
      `${part('Content-Transfer-Encoding: base64\nContent-Disposition: form-data; name="request"', '{}')}--b--`,
      'malformed_json',
    ],
    ['the same name twice', `${named('request')}${named('request')}--b--`, 'malformed_json'],
    ['too many parts', `${Array.from({ length: 66 }, (_, i) => named(`p${i}`)).join('')}--b--`, 'request_too_large'],
    ['a part that no asset names', `${named('request')}${named('x')}--b--`, 'invalid_value'],
    ['an asset without its part', `${named('request', request({ a: { part: 'x' } }))}--b--`, 'invalid_value'],
    [
      'two assets with one part',
      `${named('request', request({ a: { part: 'x' }, b: { part: 'x' } }))}${named('x')}--b--`,
      'invalid_value',
    ],
  ])('is refused with %s', (_, body, code) => {
    expect(() => parseMultipart(text(body), 'b')).toThrow(expect.objectContaining({ code }));
  });
});
