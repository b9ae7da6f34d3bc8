import type { Json } from '../../answer-shape.ts';
import { at } from '../../at.ts';
import { pathTo } from '../../param-path.ts';
import type { Subschema } from './document.ts';
import { holdingOf } from './keywords.ts';
import { isObject, refuse, show } from './problem.ts';

/** Represents a subschema while the document is parsed, before its `$ref` is resolved. */
export type Draft = { -readonly [K in keyof Subschema]: Subschema[K] } & {
  json: Json;
  /** The indices of the child schemas, by keyword and by the child's name or index. */
  children: Map<string, ReadonlyMap<string | number, number>>;
  /** Index of the subschema with the other keywords, for one with `nullable: true`. */
  inner?: number;
  /** Text of `$ref`, until it is resolved to the index `ref`. */
  refText?: string;
  /** Index of the schema at which the references in this one begin: the root, or the nearest schema with an `$id`. */
  resource: number;
};

/**
 * Returns the index of the subschema to which `ref` leads, the value of a `$ref`: a JSON Pointer (RFC 6901) as a URI
 * fragment.
 *
 * @throws AssayError `unsupported_schema` if it leads outside the document or to no schema, `invalid_value` if it is
 *   not a valid fragment
 */
export function target(from: Draft, ref: string, subschemas: readonly Draft[]): number {
  const path = pathTo(from.path, '$ref');
  if (!ref.startsWith('#')) {
    refuse(path, `${show(ref)} leads outside this schema; put the target under $defs and use "#/$defs/...".`);
  }
  let pointer: string;
  try {
    pointer = decodeURIComponent(ref.slice(1));
  } catch {
    refuse(path, `${show(ref)} is not a valid URI fragment; percent-encode it as RFC 3986 requires.`, 'invalid_value');
  }
  const id =
    pointer.startsWith('/') || pointer === ''
      ? pointedAt(pointer, from.resource, subschemas)
      : named(pointer, from.resource, subschemas);
  if (id === undefined) {
    const where = from.resource === 0 ? 'this document' : 'the schema around it that has an $id';
    refuse(path, `${show(ref)} leads to no schema in ${where}; use "#" or a pointer such as "#/$defs/name".`);
  }
  return id;
}

/** Returns the index of the schema that a JSON Pointer from the schema `start` leads to; undefined if there is none. */
function pointedAt(pointer: string, start: number, subschemas: readonly Draft[]): number | undefined {
  const [root, ...steps] = pointer.split('/');
  if (root !== '') return undefined;
  let id: number | undefined = start;
  for (let i = 0; i < steps.length && id !== undefined; ) {
    const keyword = at(steps, i++);
    id = at(subschemas, id).inner ?? id;
    const children = at(subschemas, id).children.get(keyword);
    const kind = holdingOf(keyword, memberOf(at(subschemas, id).json, keyword));
    if (kind === 'schema') id = children?.get('');
    else {
      const name = steps[i++]?.replaceAll('~1', '/').replaceAll('~0', '~');
      if (name === undefined) return undefined;
      id = children?.get(kind === 'schemas' && /^(0|[1-9]\d{0,5})$/.test(name) ? Number(name) : name);
    }
  }
  return id;
}

/** Returns the index of the schema with this `$anchor` in the resource; undefined if there is none. */
function named(anchor: string, resource: number, subschemas: readonly Draft[]): number | undefined {
  const id = subschemas.findIndex((one) => one.resource === resource && memberOf(one.json, '$anchor') === anchor);
  return id < 0 ? undefined : id;
}

function memberOf(json: Json, name: string): Json | undefined {
  return isObject(json) && Object.hasOwn(json, name) ? json[name] : undefined;
}

/**
 * Throws `unsupported_schema` if a schema refers to itself in place, that is through `$ref`, `allOf`, `anyOf` or
 * `oneOf` only: such a reference says nothing about a value. A reference to itself through a property or an item is
 * allowed.
 */
export function refuseLoops(subschemas: readonly Draft[]): void {
  const inPlace = (s: Draft) => [
    ...(s.ref === undefined ? [] : [s.ref]),
    ...s.allOf,
    ...(s.anyOf ?? []),
    ...(s.oneOf ?? []),
  ];
  const state = new Uint8Array(subschemas.length); // 0 new, 1 open, 2 done
  for (let start = 0; start < subschemas.length; start++) {
    const open = state[start] === 0 ? [start] : [];
    while (open.length > 0) {
      const id = open.at(-1)!;
      if (state[id] !== 0) {
        state[id] = 2;
        open.pop();
        continue;
      }
      state[id] = 1;
      for (const next of inPlace(at(subschemas, id))) {
        if (state[next] === 1) {
          refuse(
            at(subschemas, id).path,
            'refers to itself without a step into a property or an item, so it says nothing; remove the reference.',
          );
        }
        if (state[next] === 0) open.push(next);
      }
    }
  }
}
