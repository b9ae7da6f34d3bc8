import type { Json, JsonSchema } from '../../answer-shape.ts';
import { isObject } from './problem.ts';

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
