import * as v from 'valibot';
import { expect, test } from 'vitest';
import { ROUTES } from '../../handlers/routes.ts';
import { object, record, strictObject, variant } from './objects.ts';
import { distinct, lateRule } from './rules.ts';
import { unknownField, validate } from './validate.ts';

function refusal(schema: v.GenericSchema, value: unknown): string {
  try {
    return `accepted: ${JSON.stringify(validate(schema, value))}`;
  } catch (error) {
    return (error as Error).message;
  }
}

interface Node {
  type: string;
  entries?: Record<string, Node>;
  options?: readonly (Node | string)[];
  [child: string]: unknown;
}

/** Returns the types of all schemas of objects in a schema that Valibot made, not `objects.ts`. */
function foreign(node: Node): string[] {
  const own = !['object', 'strict_object', 'variant', 'record'].includes(node.type) || 'requirement' in node;
  const below = [node.item, node.value, node.wrapped, ...Object.values(node.entries ?? {}), ...(node.options ?? [])];
  const children = [...below, ...((node.pipe as Node[] | undefined) ?? []).slice(1)];
  return [
    ...(own ? [] : [node.type]),
    ...children.flatMap((child) => (typeof child === 'object' && child !== null ? foreign(child as Node) : [])),
  ];
}

test.each(ROUTES.flatMap(({ id, request }) => (request ? [[id, request] as const] : [])))(
  'the objects of %s are those of JSON',
  (_, request) => {
    expect(foreign(request as unknown as Node)).toEqual([]);
  },
);

const many = Array.from({ length: 2000 }, () => 1);

test.each<[string, v.GenericSchema, string, string]>([
  [
    'a length',
    object({ a: v.pipe(v.array(v.string()), v.length(1)) }),
    '{"a":["x","y"]}',
    'a must have exactly 1 item.',
  ],
  ['a list is no object', object({ a: v.optional(v.string()) }), '[]', 'The request must be an object.'],
  ['nor is null', record(v.string(), v.number()), 'null', 'The request must be an object.'],
  ['a record checks __proto__', record(v.string(), v.number()), '{"__proto__":"x"}', '__proto__ must be a number.'],
  ['and constructor', record(v.string(), v.number()), '{"a":1,"constructor":"x"}', 'constructor must be a number.'],
  [
    'and keeps both',
    record(v.string(), v.number()),
    '{"__proto__":1,"constructor":2}',
    'accepted: {"__proto__":1,"constructor":2}',
  ],
  ['the order is the document’s', object({ a: v.number(), b: v.number() }), '{"b":"x","a":"x"}', 'b must be a number.'],
  ['a missing member counts at the end', object({ a: v.number(), b: v.number() }), '{"b":"x"}', 'b must be a number.'],
  [
    'an unknown member goes first',
    strictObject({ a: v.number() }),
    '{"a":"x","c":1}',
    'c is not a field of this request. Remove it.',
  ],
  [
    'an option of a union is known by its type',
    v.union([v.string(), v.array(object({ a: v.number() }))]),
    '[{"a":1},{"a":"x"}]',
    '[1].a must be a number.',
  ],
  ['a union of none', v.union([v.string(), v.array(v.number())]), '1', 'The request must be a string or a list.'],
  ['an unknown variant', variant('t', [object({ t: v.literal('x') })]), '{"t":"y"}', 't must be one of: "x".'],
  [
    'an item that repeats before one that is invalid',
    v.pipe(
      v.array(v.string()),
      distinct('invalid_value', (text) => text),
    ),
    '["a","a",1]',
    '[1] repeats an earlier one.',
  ],
  ['a thousand issues and more', v.array(v.string()), JSON.stringify(many), '[0] must be a string.'],
])('%s', (_, schema, json, message) => {
  expect(refusal(schema, JSON.parse(json))).toBe(message);
});

test('a late check is made only for a refused request, before a later issue, and once', () => {
  const asked: string[] = [];
  const late = v.pipe(
    object({ a: v.string() }),
    lateRule((_, path) => asked.push(path)),
  );
  const schema = object({ list: v.array(late), end: v.optional(v.string()) });
  validate(schema, { list: [{ a: 'x' }] });
  expect(asked).toEqual([]);
  expect(refusal(schema, { list: [{ a: 'x' }, { a: 1 }, { a: 'y' }] })).toBe('list[1].a must be a string.');
  expect(refusal(schema, { list: [{ a: 'x' }, { a: 'y' }], end: 1 })).toBe('end must be a string.');
  expect(asked).toEqual(['list[0]', 'list[0]', 'list[1]']);
});

const FIELDS = ['name', 'type', 'question', 'options', 'max_output_tokens', 'top_logprobs', 'url'];

test.each<[string, string | undefined]>([
  ['qestion', 'question'],
  ['Question', 'question'],
  ['option', 'options'],
  ['maxOutputTokens', 'max_output_tokens'],
  ['max-output-token', 'max_output_tokens'],
  ['nmae', undefined],
  ['name_', 'name'],
  ['toplogprob', 'top_logprobs'],
  ['u', undefined],
  ['', undefined],
  ['stream', undefined],
  ['question'.repeat(9), undefined],
  ['__proto__', undefined],
])('%s → %s', (name, meant) => {
  const { code, message } = unknownField(name, FIELDS);
  expect(code).toBe('unknown_field');
  expect(message).toBe(
    meant === undefined
      ? 'is not a field of this request. Remove it'
      : `is not a field of this request. Did you mean “${meant}”? If not, remove it`,
  );
});

test.each([
  ['reason', FIELDS, 'To get a reason, ask for it in instruction, such as "Give a short reason"'],
  ['reason', ['tasks'], 'Remove it'],
  ['max_tokens', FIELDS, 'Send max_output_tokens'],
])('%s among %j: %s', (name, known, advice) => {
  expect(unknownField(name, known).message).toBe(`is not a field of this request. ${advice}`);
});
