import type { AnswerShape, Json, JsonSchema } from '../answer-shape.ts';
import type { Fuel } from '../grammar/fuel.ts';
import { compileSchema } from '../grammar/resolve/compile.ts';
import { checkSize } from '../grammar/schema/check-size.ts';
import { isObject, refuse, show } from '../grammar/schema/problem.ts';
import { expandShorthand, isShorthand } from '../grammar/schema/shorthand.ts';
import { refuseChangedNumbers } from './exact-numbers.ts';

export interface AnswerSchemaRequest {
  /** The schema as parsed: JSON Schema 2020-12 or, unless `jsonSchemaOnly`, the shorthand (docs/interface.md, D-11). */
  schema: unknown;
  /**
   * True for the schemas of chats, which have no shorthand.
   */
  jsonSchemaOnly?: boolean;
  /** Path of the schema in the request, for errors: `tasks[2].schema`. */
  param: string;
  /** The `keys` of the task, if it has any: names of properties of the schema, which the answer has in this order. */
  keys?: readonly string[];
  /** Path of the keys in the request, for errors: `tasks[2].keys`; `param` by default. */
  keysParam?: string;
  /**
   * Compile budget that all schemas of a request share (`sharedFuel`); without it, only the limits of each schema
   * apply.
   */
  fuel?: Fuel;
}

/**
 * Returns the shape of an answer with this schema, with a shorthand expanded, if a grammar can enforce it.
 *
 * @throws AssayError `invalid_type` or `invalid_value` for a malformed schema, or for `keys` that it does not have;
 *   `unsupported_schema` for a schema that cannot be enforced, that is too large, or that nothing satisfies. `param` is
 *   the path of the part at fault.
 */
export function checkAnswerSchema(request: AnswerSchemaRequest): AnswerShape {
  const { schema, jsonSchemaOnly, param, keys, keysParam, fuel } = request;
  if (!isObject(schema)) refuse(param, `must be an object, not ${show(schema)}.`, 'invalid_type');
  checkSize(schema, param);
  // The cast is safe, because the request was parsed from JSON.
  const json: JsonSchema = !jsonSchemaOnly && isShorthand(schema as Json) ? expandShorthand(schema) : schema;
  compileSchema(json, {
    path: param,
    ...(keys ? { keys } : {}),
    ...(keysParam === undefined ? {} : { keysPath: keysParam }),
    ...(fuel ? { fuel } : {}),
  });
  refuseChangedNumbers(json, param);
  return { kind: 'schema', schema: json, ...(keys ? { keys } : {}) };
}
