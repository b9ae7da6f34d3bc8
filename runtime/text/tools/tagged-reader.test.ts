import { describe, expect, it } from 'vitest';
import type { Json, JsonSchema } from '../../../lib/answer-shape.ts';
import { Automaton, type State } from '../../../lib/grammar/automaton/automaton.ts';
import { type Tags, taggedObject } from '../../../lib/grammar/tagged-object.ts';
import { TaggedReader } from './tagged-reader.ts';

const QWEN: Tags = { open: '<parameter=', named: '>\n', close: '\n</parameter>\n' };
const SEED: Tags = { open: '<parameter=', named: '>', close: '</parameter>\n' };

const schema: JsonSchema = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    size: { type: 'integer', minimum: 1 },
    kind: { enum: ['a', 'ab', 1, null] },
    any: { type: ['string', 'integer', 'null'] },
    list: { type: 'array', items: { type: 'string' } },
    code: { type: 'string', pattern: '^[A-Z]{2}$' },
  },
  required: ['text'],
  additionalProperties: false,
};

/** Writes arguments as a model does. */
function written(args: Readonly<Record<string, Json>>, { open, named, close }: Tags): string {
  const value = (json: Json) => (typeof json === 'string' ? json : JSON.stringify(json));
  return Object.entries(args)
    .map(([name, json]) => open + name + named + value(json) + close)
    .join('');
}

function accepts(text: string, tags: Tags): boolean {
  const value = taggedObject(schema, tags, 'tools[0]');
  let state: State | null = new Automaton([{ before: '', value, after: '</function>' }]).start;
  for (const byte of new TextEncoder().encode(`${text}</function>`)) state = state?.next(byte) ?? null;
  return state?.complete ?? false;
}

/** Arguments that obey the schema. */
const VALID: Readonly<Record<string, Json>>[] = [
  { text: '' },
  { text: 'if (a < b) {\n\treturn "</param>";\n}\n' },
  { text: 'Köln 😀 \\n "x"', size: 12 },
  { text: '</functio', kind: 'a', any: 'null and void' },
  { text: 'x', kind: 'ab', any: 7 },
  { text: 'x', kind: 1, any: null },
  { text: '\n', kind: null, list: ['</parameter>', 'b\n'], code: 'DE' },
];

describe.each([
  ['Qwen3-Coder', QWEN],
  ['Seed-OSS', SEED],
])('%s', (_, tags) => {
  it.each(VALID)('%j is read back, however it is split', (args) => {
    const text = written(args, tags);
    expect(accepts(text, tags)).toBe(true);
    for (let at = 0; at <= text.length; at++) {
      const reader = new TaggedReader(taggedObject(schema, tags, 'tools[0]'));
      const json = reader.push(text.slice(0, at), false) + reader.push(text.slice(at), false) + reader.push('', true);
      expect(JSON.parse(json)).toEqual(args);
      expect(Object.keys(JSON.parse(json))).toEqual(Object.keys(args));
    }
  });

  it.each([
    {},
    { size: 1 },
    { text: 'x', size: 0 },
    { text: 'x', other: 1 },
    { text: 'x', code: 'de' },
    { text: 'x', kind: 'b' },
    { size: 1, text: 'x' },
    { text: `a${tags.close}b` },
  ])('%j is not allowed', (args) => {
    expect(accepts(written(args, tags), tags)).toBe(false);
  });
});

it('returns a string as it arrives, and a call that is cut incomplete', () => {
  const reader = new TaggedReader(taggedObject(schema, QWEN, 'tools[0]'));
  expect(reader.push('<parameter=te', false)).toBe('');
  expect(reader.push('xt>\nOne "line"\n</par', false)).toBe('{"text":"One \\"line\\"');
  expect(reader.push('t\n', false)).toBe('\\n</part');
  expect(reader.push('</parameter>\n<parameter=size>\n1', false)).toBe('","size":');
});

it('refuses a schema that is not one object', () => {
  const either: JsonSchema = { anyOf: [schema, { type: 'object', properties: { b: { type: 'string' } } }] };
  expect(() => taggedObject(either, QWEN, 'tools[3]')).toThrow(
    expect.objectContaining({ code: 'unsupported_schema', param: 'tools[3]' }),
  );
});
