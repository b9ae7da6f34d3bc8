import { describe, expect, test } from 'vitest';
import { AssayError } from '../errors.ts';
import { sharedFuel } from '../grammar/fuel.ts';
import { parseJson } from '../json/parse.ts';
import { checkAnswerSchema } from './check-answer-schema.ts';

const check = (schema: unknown, keys?: string[]) =>
  checkAnswerSchema({ schema, param: 'schema', ...(keys ? { keys, keysParam: 'keys' } : {}) });

describe('the shorthand', () => {
  test('becomes a schema whose fields are all present and may be null', () => {
    const shape = check({ vendor: 'string', lines: [{ sku: 'string', qty: 'integer' }] });
    expect(shape).toEqual({
      kind: 'schema',
      schema: {
        type: 'object',
        properties: {
          vendor: { type: ['string', 'null'] },
          lines: {
            type: ['array', 'null'],
            items: {
              type: 'object',
              properties: { sku: { type: ['string', 'null'] }, qty: { type: ['integer', 'null'] } },
              required: ['sku', 'qty'],
              additionalProperties: false,
            },
          },
        },
        required: ['vendor', 'lines'],
        additionalProperties: false,
      },
    });
  });

  test('keeps the order of fields and a field named __proto__', () => {
    const shape = check(JSON.parse('{"b":"string","__proto__":"number","a":"boolean"}'));
    if (shape.kind !== 'schema') throw new Error('no schema');
    expect(Object.keys(shape.schema.properties as object)).toEqual(['b', '__proto__', 'a']);
  });

  test('is not assumed if one value is not a type name', () => {
    const schema = { type: 'object', properties: { type: { type: 'string' } } };
    expect(check(schema)).toEqual({ kind: 'schema', schema });
  });
});

test('shorthand of more levels than its JSON Schema may have says what to write instead', () => {
  let shorthand: unknown = 'string';
  for (let i = 0; i < 29; i++) shorthand = { a: shorthand };
  expect(check(shorthand).kind).toBe('schema');
  expect(() => check({ a: shorthand })).toThrow(/shorthand counts twice\); use \$defs/);
});

test('an unknown keyword is explained as shorthand only where there is no known one', () => {
  expect(() => check({ a: 'string', b: 'text' })).toThrow(/meant as the shorthand/);
  expect(() => check({ type: 'object', a: 'string' })).toThrow(/"a" is not a keyword, but its value is a schema/);
});

const object = (properties: object) => ({ type: 'object', properties });
const nested = (depth: number): object => (depth === 0 ? { type: 'string' } : object({ a: nested(depth - 1) }));

describe('refuses', () => {
  test.each<[string, unknown, string, string]>([
    ['no object', 'string', 'invalid_type', 'schema'],
    ['a list', [], 'invalid_type', 'schema'],
    ['a list as the root', { type: 'array', items: {} }, 'unsupported_schema', 'schema'],
    ['a list without a type as the root', { items: {}, minItems: 1 }, 'unsupported_schema', 'schema'],
    ['a text without a type as the root', { allOf: [{ minLength: 1 }] }, 'unsupported_schema', 'schema'],
    ['another keyword', { ...object({}), if: { required: ['a'] } }, 'unsupported_schema', 'schema.if'],
    [
      'a keyword deep inside',
      object({ a: { contains: {}, minContains: 1 } }),
      'unsupported_schema',
      'schema.properties.a.minContains',
    ],
    [
      'a misspelt keyword',
      object({ a: { type: 'string', minLenght: 3 } }),
      'unsupported_schema',
      'schema.properties.a.minLenght',
    ],
    ['a property outside properties', { type: 'object', a: { type: 'string' } }, 'unsupported_schema', 'schema.a'],
    ['not with a schema', object({ a: { not: { type: 'null' } } }), 'unsupported_schema', 'schema.properties.a.not'],
    [
      'a property that is false and required',
      { ...object({ a: { not: {} } }), required: ['a'] },
      'unsupported_schema',
      'schema.properties.a',
    ],
    [
      'unique objects',
      object({ a: { items: object({}), uniqueItems: true } }),
      'unsupported_schema',
      'schema.properties.a',
    ],
    [
      'more unique items than there are',
      { ...object({ a: { items: { enum: [1, 2] }, uniqueItems: true, minItems: 3 } }), required: ['a'] },
      'unsupported_schema',
      'schema.properties.a',
    ],
    ['a type alone', { type: 'string' }, 'unsupported_schema', 'schema'],
    ['a misspelt type name', object({ a: { type: 'str' } }), 'invalid_value', 'schema.properties.a.type'],
    ['a type of another type', object({ a: { type: [3] } }), 'invalid_type', 'schema.properties.a.type[0]'],
    ['a shorthand with a mistake', { a: 'string', b: 'text' }, 'unsupported_schema', 'schema.a'],
    ['an empty shorthand list', { a: [] }, 'unsupported_schema', 'schema.a'],
    ['a negative count', object({ a: { minItems: -1 } }), 'invalid_value', 'schema.properties.a.minItems'],
    ['a broken count', object({ a: { maxLength: 1.5 } }), 'invalid_value', 'schema.properties.a.maxLength'],
    ['a bound that is text', object({ a: { minimum: '1' } }), 'invalid_type', 'schema.properties.a.minimum'],
    ['a step of zero', object({ a: { multipleOf: 0 } }), 'invalid_value', 'schema.properties.a.multipleOf'],
    ['a flag that is text', object({ a: { deprecated: 'yes' } }), 'invalid_type', 'schema.properties.a.deprecated'],
    [
      'a format that is no text',
      object({ a: { format: 3, pattern: 'a' } }),
      'invalid_type',
      'schema.properties.a.format',
    ],
    ['an empty enum', object({ a: { enum: [] } }), 'invalid_value', 'schema.properties.a.enum'],
    ['an empty anyOf', object({ a: { anyOf: [] } }), 'invalid_value', 'schema.properties.a.anyOf'],
    ['required that is no list', { required: 'a' }, 'invalid_type', 'schema.required'],
    ['a name required twice', { type: 'object', required: ['a', 'a'] }, 'invalid_value', 'schema.required'],
    ['a schema that is a number', object({ a: 3 }), 'invalid_type', 'schema.properties.a'],
    ['a $ref elsewhere', object({ a: { $ref: 'https://x.test/s' } }), 'unsupported_schema', 'schema.properties.a.$ref'],
    ['a $ref to nothing', object({ a: { $ref: '#/$defs/b' } }), 'unsupported_schema', 'schema.properties.a.$ref'],
    [
      'a $ref out of a part with its own $id',
      { ...object({ a: { $id: 'a', $ref: '#/$defs/b' } }), $defs: { b: {} } },
      'unsupported_schema',
      'schema.properties.a.$ref',
    ],
    ['an $id with a fragment', object({ a: { $id: '#a' } }), 'invalid_value', 'schema.properties.a.$id'],
    ['a $ref to itself', { $ref: '#' }, 'unsupported_schema', 'schema'],
    ['nesting over 64', nested(33), 'unsupported_schema', 'schema'],
    ['a number beyond all bounds', object({ a: { maximum: Number.POSITIVE_INFINITY } }), 'invalid_value', 'schema'],
    ['one inside a const', object({ a: { const: [Number.POSITIVE_INFINITY] } }), 'invalid_value', 'schema'],
    ['10,001 values', object({ a: { enum: Array(10_001).fill(1) } }), 'unsupported_schema', 'schema'],
  ])('%s', (_, schema, code, param) => {
    const failure = expect(() => check(schema));
    failure.toThrow(AssayError);
    failure.toThrow(expect.objectContaining({ code, param }));
  });

  test('a nesting that would exhaust the stack', () => {
    let schema: unknown = 'string';
    for (let i = 0; i < 100_000; i++) schema = [schema];
    expect(() => check({ a: schema })).toThrow(expect.objectContaining({ code: 'unsupported_schema' }));
  });
});

// As zod and Pydantic write records, unions with a discriminator, notes for readers, and formats.
test.each([
  { propertyNames: { type: 'string' }, additionalProperties: { type: 'number' } },
  { propertyNames: {} },
  { propertyNames: true },
  { anyOf: [object({ k: { const: 'a' } }), object({ k: { const: 'b' } })], discriminator: { propertyName: 'k' } },
  { type: 'string', deprecated: true, readOnly: true, writeOnly: false },
  { type: 'string', format: 'e164', pattern: '^\\+[1-9][0-9]{6,14}$' },
  {
    type: 'string',
    format: 'password',
    'x-order': 1,
    propertyOrder: 1,
    tsType: 'Secret',
    example: 'b',
    markdownDescription: '**b**',
    'ui:widget': 'text',
  },
  { type: 'string', patternProperties: {}, dependentRequired: {}, uniqueItems: false, note: 'b' },
])('what has no effect, %j, is accepted', (part) => {
  const schema = object({ a: part });
  expect(check(schema)).toEqual({ kind: 'schema', schema });
  expect(checkAnswerSchema({ schema, param: 'schema', jsonSchemaOnly: true }).kind).toBe('schema');
});

describe('a whole number beyond 2^53', () => {
  const sent = (json: string) => parseJson(new TextEncoder().encode(`{"type":"object","properties":{"a":${json}}}`));

  test.each([
    ['{"const":9007199254740993}', 'const'],
    ['{"enum":[1,{"id":[12345678901234567890]}]}', 'enum[1].id[0]'],
    ['{"enum":[9007199254740992],"minimum":9007199254740993}', 'minimum'],
  ])('is refused if a double changes it: %s', (json, at) => {
    expect(() => check(sent(json))).toThrow(
      expect.objectContaining({ code: 'unsupported_schema', param: `schema.properties.a.${at}` }),
    );
  });

  test.each([
    '{"const":9007199254740992}',
    '{"const":-1000000000000000000000}',
    '{"const":1e300}',
    '{"type":"integer","default":9007199254740993,"examples":[12345678901234567890]}',
  ])('is accepted if a double keeps it, and in an annotation: %s', (json) => {
    expect(check(sent(json)).kind).toBe('schema');
  });
});

test('the numbers that remain of a range are found when many single ones are excluded', () => {
  const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);
  const without = (count: number) =>
    object({ a: { oneOf: [{ type: 'integer', minimum: 100, maximum: 199 }, { enum: range(100, count) }] } });
  expect(check({ ...without(99), required: ['a'] }).kind).toBe('schema');
  expect(() => check({ ...without(100), required: ['a'] })).toThrow();
});

describe('keys with a schema', () => {
  test('are kept', () => {
    const schema = object({ a: { type: 'string' }, b: { type: 'string' } });
    expect(check(schema, ['b'])).toEqual({ kind: 'schema', schema, keys: ['b'] });
  });

  test('that it lacks are refused', () => {
    expect(() => check(object({ a: { type: 'string' } }), ['a', 'c'])).toThrow(
      expect.objectContaining({ code: 'invalid_value', param: 'keys[1]' }),
    );
  });
});

test('the total work of many large schemas in one request is bounded', () => {
  const fuel = sharedFuel();
  const large = object(
    Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`p${i}`, { pattern: `^[a-z]{${i + 100}}$` }])),
  );
  expect(() => checkAnswerSchema({ schema: large, param: 'schema' })).not.toThrow();
  const check = () => checkAnswerSchema({ schema: large, param: 'schema', fuel });
  expect(() => Array.from({ length: 256 }, check)).toThrow(expect.objectContaining({ code: 'unsupported_schema' }));
});
