import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonSchema } from '../contract/answer-shape.ts';
import { inlineDefinitions } from './inline-definitions.ts';

const text = { type: 'string' };
const object = (properties: JsonSchema, more: JsonSchema = {}): JsonSchema => ({ type: 'object', properties, ...more });
const ref = (name: string) => ({ $ref: `#/$defs/${name}` });

describe('inlineDefinitions', () => {
  it.each<[string, JsonSchema, JsonSchema]>([
    ['leaves out what nothing refers to', object({ a: text }, { $defs: { b: text } }), object({ a: text })],
    ['puts what is used once where it is used', object({ a: ref('b') }, { $defs: { b: text } }), object({ a: text })],
    [
      'keeps what is used twice',
      object({ a: ref('b'), c: ref('b') }, { $defs: { b: text, d: text } }),
      object({ a: ref('b'), c: ref('b') }, { $defs: { b: text } }),
    ],
    [
      'follows a chain',
      { ...ref('a'), $defs: { a: ref('b'), b: ref('c'), c: object({ x: text }) } },
      object({ x: text }),
    ],
    [
      'skips a definition that only refers to another',
      object({ a: ref('b'), c: ref('b') }, { $defs: { b: ref('d'), d: text } }),
      object({ a: ref('d'), c: ref('d') }, { $defs: { d: text } }),
    ],
    [
      'keeps recursion',
      { ...ref('tree'), $defs: { tree: object({ children: { type: 'array', items: ref('tree') } }) } },
      { ...ref('tree'), $defs: { tree: object({ children: { type: 'array', items: ref('tree') } }) } },
    ],
    ['keeps recursion through the root', object({ a: { $ref: '#' } }), object({ a: { $ref: '#' } })],
    [
      'takes the description beside a reference for that of the definition',
      object(
        { a: { ...ref('b'), description: 'here' } },
        { $defs: { b: { ...text, description: 'there', title: 't' } } },
      ),
      object({ a: { ...text, description: 'here', title: 't' } }),
    ],
    [
      'keeps a reference beside which more is said',
      object({ a: { ...ref('b'), maxLength: 3 } }, { $defs: { b: text } }),
      object({ a: { ...ref('b'), maxLength: 3 } }, { $defs: { b: text } }),
    ],
    [
      'does not take values for schemas',
      object({ a: { const: ref('b') }, c: { enum: [{ $ref: 1 }], default: { $ref: '#/x' } } }, { $defs: { b: text } }),
      object({ a: { const: ref('b') }, c: { enum: [{ $ref: 1 }], default: { $ref: '#/x' } } }),
    ],
    ['leaves out what is unused', object({ a: text }, { $schema: 's', $id: 'i', $comment: 'c' }), object({ a: text })],
    ['leaves out what is unused inside', object({ a: { ...text, readOnly: true } }), object({ a: text })],
    ['keeps a property with such a name', object({ readOnly: text }), object({ readOnly: text })],
    [
      'knows names that have to be escaped',
      object({ a: { $ref: '#/$defs/a~1b%20~0c' } }, { $defs: { 'a/b ~c': text } }),
      object({ a: text }),
    ],
    [
      'knows names of every object',
      object(
        { a: ref('toString'), b: ref('__proto__') },
        { $defs: JSON.parse('{"toString":{"type":"string"},"__proto__":{"type":"null"}}') },
      ),
      object({ a: text, b: { type: 'null' } }),
    ],
  ])('%s', (_, schema, expected) => {
    expect(inlineDefinitions(schema)).toEqual(expected);
  });

  it.each<JsonSchema>([
    object({ a: { $ref: '#/$defs/b/items' } }, { $defs: { b: { type: 'array', items: text } } }),
    object({ a: text, b: { $ref: '#/properties/a' } }, { $defs: { c: text } }),
    object({ a: { $id: 'a', $defs: { b: { type: 'integer' } }, ...ref('b') } }, { $defs: { b: text } }),
  ])('leaves a schema with other references as it is: %j', (schema) => {
    expect(inlineDefinitions(schema)).toBe(schema);
  });

  it('makes 162 chained references short', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 162 }, (_, i) => [`level_${i}`, i < 161 ? ref(`level_${i + 1}`) : object({ x: text })]),
    );
    expect(inlineDefinitions({ ...ref('level_0'), $defs })).toEqual(object({ x: text }));
  });

  it('follows a chain of definitions once, however many references begin it', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, i) => [`d${i}`, i < 999 ? ref(`d${i + 1}`) : text]),
    );
    let reads = 0;
    const counted = new Proxy($defs, {
      get(target, name) {
        reads++;
        return Reflect.get(target, name);
      },
    });
    const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`p${i}`, ref(`d${i}`)]));
    inlineDefinitions(object(properties, { $defs: counted }));
    expect(reads).toBeLessThan(10_000);
  });

  it('nests no deeper than a schema may be', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, i) => [`d${i}`, object({ x: i < 2_999 ? ref(`d${i + 1}`) : text })]),
    );
    const inlined = inlineDefinitions({ ...ref('d0'), $defs });
    expect(depthOf(inlined)).toBeLessThan(200);
    expect(JSON.stringify(inlined).length).toBeLessThan(JSON.stringify({ ...ref('d0'), $defs }).length);
  });

  it('never makes a schema longer, and keeps every reference valid', () => {
    const leaf = fc.constantFrom<Json>(text, ref('a'), ref('b'), ref('c'), ref('d'), { $ref: '#' }, true);
    const node = fc.oneof(
      leaf,
      fc.record({ type: fc.constant('array'), items: leaf }),
      fc.record({ anyOf: fc.array(leaf, { minLength: 1, maxLength: 3 }) }),
      fc.dictionary(fc.constantFrom('p', 'q', 'r'), leaf).map((properties) => object(properties)),
    );
    const schema = fc.record({
      properties: fc.dictionary(fc.constantFrom('x', 'y'), node),
      $defs: fc.record({ a: node, b: node, c: node, d: node }),
    });
    fc.assert(
      fc.property(schema, (one) => {
        const inlined = inlineDefinitions(one as JsonSchema);
        expect(JSON.stringify(inlined).length).toBeLessThanOrEqual(JSON.stringify(one).length);
        const names = JSON.stringify(inlined).matchAll(/#\/\$defs\/(\w+)/g);
        for (const [, name] of names) expect(inlined.$defs).toHaveProperty(name!);
      }),
    );
  });
});

function depthOf(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map((one) => depthOf(one as Json)));
}
