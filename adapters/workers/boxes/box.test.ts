import { describe, expect, it } from 'vitest';
import { parseBoxes } from './box.ts';

const box = { name: 'npu-1', url: 'https://npu-1.example.com/', key_secret: 'BOX_KEY_1', models: ['assay/starter'] };

describe('parseBoxes', () => {
  it('reads a list, or its JSON text', () => {
    const read = [{ ...box, url: 'https://npu-1.example.com', weight: 1 }];
    expect(parseBoxes({ BOXES: [box] })).toEqual(read);
    expect(parseBoxes({ BOXES: JSON.stringify([box]) })).toEqual(read);
  });

  it('reads further lists, as one variable is too small for many boxes', () => {
    const named = (name: string) => ({ ...box, name });
    const variables = {
      BOXES: [named('a')],
      BOXES_2: JSON.stringify([named('b')]),
      BOXES_17: [named('c')],
      BOX_KEY_1: 'x',
    };
    expect(parseBoxes(variables).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    expect(() => parseBoxes({ BOXES: [box], BOXES_2: [box] })).toThrow('the name npu-1');
    expect(() => parseBoxes({ BOXES: [box], BOXES_2: [{ ...box, url: 'x' }] })).toThrow(/^BOXES_2 at 0\.url: /);
    const many = Array.from({ length: 501 }, (_, i) => i);
    const lists = { BOXES: many.map((i) => named(`a-${i}`)), BOXES_2: many.map((i) => named(`b-${i}`)) };
    expect(() => parseBoxes(lists)).toThrow('1002 boxes');
  });

  it('says that there is no list', () => expect(() => parseBoxes({})).toThrow(/no list of boxes.*wrangler\.toml/));

  it.each([
    ['nothing', undefined, /BOXES/],
    ['text that is no JSON', '[', /no valid JSON/],
    ['an empty list', [], /empty/],
    ['two boxes of one name', [box, box], /the name npu-1/],
    ['a key instead of the name of a secret', [{ ...box, key_secret: 'sk-1234' }], /0\.key_secret: .*name of a secret/],
    [
      'an unknown field',
      [{ ...box, key: 'x' }],
      /0\.key: A box has these fields: name, url, key_secret, models, weight\./,
    ],
    [
      'a missing field',
      [{ ...box, url: undefined }].map(({ url: _, ...rest }) => rest),
      /0\.url: This field is missing/,
    ],
    ['plain http to another machine', [{ ...box, url: 'http://10.0.0.2:8080' }], /0\.url: .*https/],
    ['a url with a password', [{ ...box, url: 'https://a:b@c.example' }], /0\.url/],
    ['a bad model id', [{ ...box, models: ['../x'] }], /0\.models\.0/],
    ['no models', [{ ...box, models: [] }], /0\.models: .*at least one/],
    ['a weight of nothing', [{ ...box, weight: 0 }], /0\.weight/],
    ['a name with a slash', [{ ...box, name: 'a/b' }], /0\.name/],
  ])('refuses %s', (_, variable, message) => {
    expect(() => parseBoxes({ BOXES: variable })).toThrow(message);
  });

  it.each(['http://127.0.0.1:8080', 'http://localhost:1', 'http://[::1]:9/'])(
    'takes plain http on loopback: %s',
    (url) => {
      expect(parseBoxes({ BOXES: [{ ...box, url }] })).toHaveLength(1);
    },
  );
});
