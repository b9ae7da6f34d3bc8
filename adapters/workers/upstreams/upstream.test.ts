import { describe, expect, it } from 'vitest';
import { parseUpstreams } from './upstream.ts';

const upstream = {
  name: 'npu-1',
  url: 'https://npu-1.example.com/',
  key_secret: 'BOX_KEY_1',
  models: ['assay/starter'],
};

describe('parseUpstreams', () => {
  it('reads a list, or its JSON text', () => {
    const read = [{ ...upstream, url: 'https://npu-1.example.com', weight: 1 }];
    expect(parseUpstreams({ BOXES: [upstream] })).toEqual(read);
    expect(parseUpstreams({ BOXES: JSON.stringify([upstream]) })).toEqual(read);
  });

  it('reads further lists, as one variable is too small for many boxes', () => {
    const named = (name: string) => ({ ...upstream, name });
    const variables = {
      BOXES: [named('a')],
      BOXES_2: JSON.stringify([named('b')]),
      BOXES_17: [named('c')],
      BOX_KEY_1: 'x',
    };
    expect(parseUpstreams(variables).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    expect(() => parseUpstreams({ BOXES: [upstream], BOXES_2: [upstream] })).toThrow('the name npu-1');
    expect(() => parseUpstreams({ BOXES: [upstream], BOXES_2: [{ ...upstream, url: 'x' }] })).toThrow(
      /^BOXES_2 at 0\.url: /,
    );
    const many = Array.from({ length: 501 }, (_, i) => i);
    const lists = { BOXES: many.map((i) => named(`a-${i}`)), BOXES_2: many.map((i) => named(`b-${i}`)) };
    expect(() => parseUpstreams(lists)).toThrow('1002 boxes');
  });

  it('says that there is no list', () => expect(() => parseUpstreams({})).toThrow(/no list of boxes.*wrangler\.toml/));

  it.each([
    ['nothing', undefined, /BOXES/],
    ['text that is no JSON', '[', /not valid JSON/],
    ['an empty list', [], /empty/],
    ['two boxes of one name', [upstream, upstream], /the name npu-1/],
    [
      'a key instead of the name of a secret',
      [{ ...upstream, key_secret: 'sk-1234' }],
      /0\.key_secret: .*name of a secret/,
    ],
    [
      'an unknown field',
      [{ ...upstream, key: 'x' }],
      /0\.key: A box has these fields: name, url, key_secret, models, weight\./,
    ],
    [
      'a missing field',
      [{ ...upstream, url: undefined }].map(({ url: _, ...rest }) => rest),
      /0\.url: This field is missing/,
    ],
    ['plain http to another machine', [{ ...upstream, url: 'http://10.0.0.2:8080' }], /0\.url: .*https/],
    ['a url with a password', [{ ...upstream, url: 'https://a:b@c.example' }], /0\.url/],
    ['a bad model id', [{ ...upstream, models: ['../x'] }], /0\.models\.0/],
    ['no models', [{ ...upstream, models: [] }], /0\.models: .*at least one/],
    ['a weight of nothing', [{ ...upstream, weight: 0 }], /0\.weight/],
    ['a name with a slash', [{ ...upstream, name: 'a/b' }], /0\.name/],
  ])('refuses %s', (_, variable, message) => {
    expect(() => parseUpstreams({ BOXES: variable })).toThrow(message);
  });

  it.each(['http://127.0.0.1:8080', 'http://localhost:1', 'http://[::1]:9/'])(
    'takes plain http on loopback: %s',
    (url) => {
      expect(parseUpstreams({ BOXES: [{ ...upstream, url }] })).toHaveLength(1);
    },
  );
});
