import type { AnswerShape, Json, JsonSchema } from '../contract/answer-shape.ts';
import { type Fuel, isAccepted } from '../grammar/fuel.ts';
import { decimal } from '../grammar/number/decimal.ts';
import { compileSchema } from '../grammar/resolve/compile.ts';
import { checkSize } from '../grammar/schema/document.ts';
import { childrenOf, holdingOf, KEYWORDS } from '../grammar/schema/keywords.ts';
import { refuse, show } from '../grammar/schema/problem.ts';
import { isObject } from '../json/property.ts';
import { writtenNumber } from '../json/written-numbers.ts';
import { pathTo } from '../param-path.ts';

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
  // The cast is safe, because the request was parsed from JSON.
  const sent = schema as JsonSchema;
  checkSize(sent, param);
  const json = !jsonSchemaOnly && isShorthand(sent) ? expandShorthand(sent) : sent;
  if (!isAccepted()) {
    compileSchema(json, {
      path: param,
      ...(keys ? { keys } : {}),
      ...(keysParam === undefined ? {} : { keysPath: keysParam }),
      ...(fuel ? { fuel } : {}),
    });
  }
  refuseChangedNumbers(json, param);
  return { kind: 'schema', schema: json, ...(keys ? { keys } : {}) };
}

const TYPE_NAMES: readonly unknown[] = ['string', 'number', 'integer', 'boolean'];

/**
 * Tells whether a schema is shorthand: an object with at least one field, whose values at every depth are type names,
 * lists of one value, or such objects. An object whose only member is `type` with a type name is JSON Schema, and so is
 * what contains it: `{"properties": {"age": {"type": "integer"}}}`.
 */
export function isShorthand(schema: Json): boolean {
  if (!isObject(schema)) return false;
  const open: Json[] = [schema];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (TYPE_NAMES.includes(node)) continue;
    const children: readonly Json[] = Array.isArray(node) ? node : isObject(node) ? Object.values(node) : [];
    if (children.length === 0 || (Array.isArray(node) && children.length !== 1)) return false;
    if (isObject(node) && children.length === 1 && TYPE_NAMES.includes(node.type)) return false;
    open.push(...children);
  }
  return true;
}

/**
 * Expands shorthand, for which `isShorthand` is true, to JSON Schema. All fields are required and each may be null;
 * list items and the root may not.
 */
export function expandShorthand(shorthand: JsonSchema): JsonSchema {
  type Pending = { node: Json; nullable: boolean; put(schema: JsonSchema): void };
  let root: JsonSchema = {};
  const open: Pending[] = [
    {
      node: shorthand,
      nullable: false,
      put: (schema) => {
        root = schema;
      },
    },
  ];
  const types = (name: string, nullable: boolean) => (nullable ? [name, 'null'] : name);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, nullable, put } = next;
    if (typeof node === 'string') {
      put({ type: types(node, nullable) });
    } else if (Array.isArray(node)) {
      const schema: { type: Json; items?: Json } = { type: types('array', nullable) };
      // The casts below are safe, because `isShorthand` accepts only objects, lists of one item and type names.
      put(schema as JsonSchema);
      open.push({
        node: node[0] as Json,
        nullable: false,
        put: (items) => {
          schema.items = items;
        },
      });
    } else {
      const fields = Object.entries(node as JsonSchema);
      const properties: { [key: string]: Json } = {};
      for (const [key, child] of fields) {
        // Keeps the order sent, and treats `__proto__` as a field like any other.
        define(properties, key, null);
        open.push({ node: child, nullable: true, put: (schema) => define(properties, key, schema) });
      }
      put({
        type: types('object', nullable),
        properties,
        required: fields.map(([key]) => key),
        additionalProperties: false,
      });
    }
  }
  return root;
}

function define(target: object, key: string, value: Json): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

/**
 * Throws `unsupported_schema` if a schema has a whole number that a double changes, unless it is in an annotation or
 * bounds a value.
 * Otherwise, `{"const": 9007199254740993}` would be answered with 9007199254740992, which as an id is another one.
 *
 * @param schema a schema that `compileSchema` has accepted, as parsed from the request
 * @param path path of the schema in the caller's input, for errors
 */
function refuseChangedNumbers(schema: JsonSchema, path: string): void {
  const large = [...subschemas(schema, path)].some(([one]) => isLarge(one.const) || isLarge(one.enum));
  for (const [one, at] of subschemas(schema, path)) {
    for (const [keyword, value] of Object.entries<Json>(one)) {
      const rule = KEYWORDS.get(keyword);
      if (rule?.holds !== 'value' || rule.annotation) continue;
      // No number is generated beyond 2^53, so a double may change a bound there, unless a constant is compared.
      if (large || !rule.bounds) checkValue(one, keyword, value, pathTo(at, keyword));
    }
  }
}

/** Tells whether a value is or contains a number beyond 2^53. */
function isLarge(value: Json | undefined): boolean {
  if (typeof value === 'number') return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  return typeof value === 'object' && value !== null && Object.values<Json>(value).some(isLarge);
}

/** Checks the numbers in the value that `holder` has under `key`. */
function checkValue(holder: object, key: string | number, value: Json, path: string): void {
  if (typeof value === 'number') {
    const digits = writtenNumber(holder, key);
    if (digits === undefined || !/^-?\d+$/.test(digits) || BigInt(digits) === decimal(value).units) return;
    refuse(path, `${digits} is beyond 2^53 and would become another number; use a smaller one, or a string.`);
  }
  // `parseJson` bounds the depth, so recursion is safe.
  if (Array.isArray(value)) value.forEach((item: Json, i) => void checkValue(value, i, item, pathTo(path, i)));
  else if (isObject(value)) {
    for (const [name, member] of Object.entries<Json>(value)) checkValue(value, name, member, pathTo(path, name));
  }
}

/**
 * Yields a schema and all its subschemas that are objects, each with its path, a schema before its subschemas.
 *
 * @param schema a schema that `compileSchema` has accepted
 * @param path path of the schema in the caller's input
 */
function* subschemas(schema: JsonSchema, path: string): Generator<[schema: JsonSchema, path: string]> {
  const open: [schema: Json, path: string][] = [[schema, path]];
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [one, at] = top;
    if (!isObject(one)) continue;
    yield [one, at];
    for (const [keyword, value] of Object.entries<Json>(one)) {
      const holds = holdingOf(keyword, value);
      if (holds === 'value') continue;
      const below = pathTo(at, keyword);
      for (const [name, child] of childrenOf(keyword, holds, value, below)) {
        open.push([child, holds === 'schema' ? below : pathTo(below, name)]);
      }
    }
  }
}
