import { describe, expect, it } from 'vitest';
import type { JsonSchema } from '../answer-shape.ts';
import { expandShorthand } from '../grammar/schema/shorthand.ts';
import { compactSchema } from './compact-schema.ts';

describe('a shorthand, expanded, is shown as it was sent', () => {
  it.each<JsonSchema>([
    { a: 'string' },
    { a: 'integer', b: 'number', c: 'boolean' },
    { vendor: 'string', lines: [{ sku: 'string', qty: 'integer' }] },
    { a: { b: { c: ['string'] } } },
    { list: [['number']], type: 'string', items: 'integer', properties: { required: 'string' } },
    JSON.parse('{"__proto__":"string","toString":"integer"}'),
  ])('%j', (shorthand) => {
    expect(JSON.stringify(compactSchema(expandShorthand(shorthand)))).toBe(JSON.stringify(shorthand));
  });
});

describe('any other schema is shown whole', () => {
  const string = { type: ['string', 'null'] };
  const object = { type: 'object', properties: { a: string }, required: ['a'], additionalProperties: false };
  it.each<JsonSchema>([
    { ...object, required: [] },
    { ...object, additionalProperties: true },
    { ...object, title: 'a title says more' },
    { ...object, properties: { a: { type: 'string' } } },
    { ...object, properties: { a: { ...string, maxLength: 3 } } },
    { ...object, properties: { a: { type: ['string', 'null'], items: {} } } },
    { type: 'object' },
    { type: 'object', properties: {}, required: [], additionalProperties: false },
  ])('%j', (schema) => {
    expect(compactSchema(schema)).toEqual(schema);
  });
});

it('a definition that is used once becomes shorthand too', () => {
  const a = {
    type: 'object',
    properties: { a: { type: ['string', 'null'] } },
    required: ['a'],
    additionalProperties: false,
  };
  expect(compactSchema({ $ref: '#/$defs/a', $defs: { a } })).toEqual({ a: 'string' });
});
