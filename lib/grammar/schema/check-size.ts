import type { Json } from '../../answer-shape.ts';
import { LIMITS } from '../limits.ts';
import { refuse } from './problem.ts';

/**
 * Message about a schema that is too deep. A shorthand is checked both as sent and as expanded, where each object takes
 * two levels.
 */
const TOO_DEEP = `is nested deeper than ${LIMITS.schemaDepth} (shorthand counts twice); use $defs and $ref.`;

/**
 * Returns the number of JSON values in a schema, root excluded. Called before all other work on the schema.
 *
 * @param path path of the schema in the caller's input, which an error names
 * @throws AssayError `unsupported_schema` for too many levels, values or characters (`LIMITS`); `invalid_value` for a
 *   number that is not finite
 */
export function checkSize(schema: Json, path: string): number {
  const open: [Json, number][] = [[schema, 1]];
  let values = 0;
  let characters = 0;
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [value, depth] = top;
    if (typeof value === 'string') characters += value.length;
    else if (typeof value === 'number' && !Number.isFinite(value)) {
      refuse(path, 'has a number that is too large for a double; use a smaller one.', 'invalid_value');
    } else if (typeof value === 'object' && value !== null) {
      if (depth > LIMITS.schemaDepth) refuse(path, TOO_DEEP);
      const names = Object.keys(value);
      values += names.length;
      if (values > LIMITS.schemaValues) {
        refuse(path, `has more than ${LIMITS.schemaValues} values; make it smaller.`);
      }
      for (const name of names) {
        if (!Array.isArray(value)) characters += name.length;
        // The cast is safe, because the value is an object or array with this name or index.
        open.push([(value as { readonly [name: string]: Json })[name]!, depth + 1]);
      }
    }
    if (characters > LIMITS.schemaCharacters) {
      refuse(path, `has more than ${LIMITS.schemaCharacters} characters in its names and texts; shorten them.`);
    }
  }
  return values;
}
