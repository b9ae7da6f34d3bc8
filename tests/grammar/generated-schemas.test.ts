import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { checkAnswerSchema } from '../../lib/tasks/check-answer-schema.ts';
import { shapeConstraint } from '../../lib/tasks/task-grammar.ts';
import { keysAreUnique, validator } from './oracle.ts';
import { generate, randomFrom } from './random-model.ts';
import { smallVocabulary } from './vocabularies.ts';

/*
 * Schemas as zod 3.25 (with zod-to-json-schema and openai's helper), zod 4.3 and 4.6, Pydantic 2.13 and 2.14, the MCP
 * SDK for Python 2.3 (tools' inputs and outputs), FastAPI 0.165 (OpenAPI 3.1), OpenAPI 3.0 and schemars 0.8 and 1 write
 * them for every kind of value, in each of their dialects. All are accepted, and every answer is valid.
 */

type Schema = { readonly [keyword: string]: unknown };
const text = readFileSync(new URL('generated-schemas.json', import.meta.url), 'utf8');
const schemas = Object.entries(JSON.parse(text) as { readonly [name: string]: Schema });
const vocabulary = smallVocabulary();

/** Returns the same schema in JSON Schema 2020-12, which ajv reads, without the words of older drafts and OpenAPI. */
function modern(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(modern);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { nullable, items, additionalItems, exclusiveMinimum, exclusiveMaximum, ...rest } = schema as Schema;
  const bound = (flag: unknown, limit: unknown) => (flag === true ? limit : flag === false ? undefined : flag);
  const list = Array.isArray(items);
  const written: Schema = {
    ...rest,
    ...(list && items.length > 0 ? { prefixItems: items } : {}),
    ...(list ? { items: additionalItems ?? true } : items === undefined ? {} : { items }),
    exclusiveMinimum: bound(exclusiveMinimum, rest.minimum),
    exclusiveMaximum: bound(exclusiveMaximum, rest.maximum),
  };
  // ajv compiles patterns with the `u` flag, which refuses this escape outside a class.
  const pattern = typeof rest.pattern === 'string' ? { pattern: rest.pattern.replace(/^\^ab\\-/u, '^ab-') } : {};
  const made = Object.fromEntries(
    Object.entries({ ...written, ...pattern }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, modern(value)]],
    ),
  );
  return nullable === true ? { anyOf: [made, { type: 'null' }] } : made;
}

/** Bounds texts with a pattern, because a model that chooses at random never finds the end of one such as `a\.b`. */
function bounded<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema), (_, part) =>
    typeof part?.pattern === 'string' && part.maxLength === undefined ? { ...part, maxLength: 60 } : part,
  );
}

test.each(schemas)('%s', (_, sent) => {
  const schema = bounded(sent);
  const shape = checkAnswerSchema({ schema, param: 'schema' });
  const valid = validator(modern(schema) as object);
  for (let seed = 0; seed < 3; seed++) {
    const constraint = shapeConstraint(shape, vocabulary);
    expect(generate(constraint, vocabulary, randomFrom(seed)).whole).toBe(true);
    const answer = constraint.text();
    expect([answer, keysAreUnique(answer), valid(JSON.parse(answer))]).toEqual([answer, true, true]);
  }
});
