import type { Json, JsonSchema } from '../answer-shape.ts';
import { inlineDefinitions } from './inline-definitions.ts';

/**
 * Returns what the prompt shows for a schema: shorthand with the same meaning if there is one (the inverse of
 * `lib/grammar/schema/shorthand.ts`), or else the schema with its definitions inlined. Shorthand takes about a quarter
 * of the tokens.
 */
export function compactSchema(schema: JsonSchema): Json {
  const short = inlineDefinitions(schema);
  return shorthandOf(short, false) ?? short;
}

const NAMES: readonly unknown[] = ['string', 'number', 'integer', 'boolean'];

/** Returns the shorthand node whose expansion is this schema; undefined if there is none. */
function shorthandOf(schema: Json | undefined, nullable: boolean): Json | undefined {
  if (schema === undefined || !isObject(schema)) return undefined;
  const { type, properties, required, additionalProperties, items, ...rest } = schema;
  if (Object.keys(rest).length > 0) return undefined;
  const name = nullable ? nullableName(type) : type;
  if (name === 'object') {
    if (!isObject(properties) || additionalProperties !== false || items !== undefined) return undefined;
    const names = Object.keys(properties);
    if (names.length === 0 || JSON.stringify(required) !== JSON.stringify(names)) return undefined;
    const fields: [string, Json][] = [];
    for (const key of names) {
      const field = shorthandOf(properties[key], true);
      if (field === undefined) return undefined;
      fields.push([key, field]);
    }
    return Object.fromEntries(fields);
  }
  if (properties !== undefined || required !== undefined || additionalProperties !== undefined) return undefined;
  if (name === 'array') {
    const item = shorthandOf(items, false);
    return item === undefined ? undefined : [item];
  }
  // The cast is safe: `NAMES` contains only strings.
  return items === undefined && NAMES.includes(name) ? (name as string) : undefined;
}

function nullableName(type: Json | undefined): Json | undefined {
  // The cast is safe, because the list has two items.
  return Array.isArray(type) && type.length === 2 && type[1] === 'null' ? (type[0] as Json) : undefined;
}

function isObject(value: Json | undefined): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
