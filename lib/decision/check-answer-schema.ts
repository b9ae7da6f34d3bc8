import type { AnswerShape, Json, JsonSchema } from '../answer-shape.ts';
import type { Fuel } from '../grammar/fuel.ts';
import { compileSchema } from '../grammar/resolve/compile.ts';
import { checkSize } from '../grammar/schema/parse.ts';
import { isObject, refuse, show } from '../grammar/schema/problem.ts';
import { expandShorthand, isShorthand } from '../grammar/schema/shorthand.ts';

export interface AnswerSchemaRequest {
  /** The schema as parsed: JSON Schema 2020-12 or, unless `jsonSchemaOnly`, the shorthand (open-points.md, "Fields"). */
  schema: unknown;
  /** A chat's `json_schema` has no shorthand: `{"type":"string"}` would be an object with a field `type`. */
  jsonSchemaOnly?: boolean;
  /** Where it stands in the request: `tasks[2].schema`. */
  param: string;
  /** The `keys` field where it was sent too: they select among the schema's properties and give their order. */
  keys?: readonly string[];
  /** Where the keys stand: `tasks[2].keys`. */
  keysParam?: string;
  /** One for all schemas of a request (`requestFuel`), so that many large ones do not add up. */
  fuel?: Fuel;
}

/**
 * Checks a schema that an answer must keep to. What is accepted here is kept to while decoding; nothing in it is ignored.
 *
 * Throws `AssayError`: `invalid_type` or `invalid_value` for a malformed schema, `unsupported_schema` for one that cannot be
 * kept to or that nothing satisfies. The message names the keyword, `param` its path.
 */
export function checkAnswerSchema(request: AnswerSchemaRequest): AnswerShape {
  const { schema, jsonSchemaOnly, param, keys, keysParam, fuel } = request;
  if (!isObject(schema)) refuse(param, `must be an object, not ${show(schema)}.`, 'invalid_type');
  checkSize(schema, param);
  const json: JsonSchema = !jsonSchemaOnly && isShorthand(schema as Json) ? expandShorthand(schema) : schema;
  compileSchema(json, {
    path: param,
    ...(keys ? { keys } : {}),
    ...(keysParam === undefined ? {} : { keysPath: keysParam }),
    ...(fuel ? { fuel } : {}),
  });
  return { kind: 'schema', schema: json, ...(keys ? { keys } : {}) };
}
