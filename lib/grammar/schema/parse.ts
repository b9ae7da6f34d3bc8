import type { Json, JsonSchema } from '../../answer-shape.ts';
import { at } from '../../at.ts';
import { pathTo } from '../../param-path.ts';
import { LIMITS } from '../limits.ts';
import type { SchemaDocument, Subschema, TypeName } from './document.ts';
import { childrenOf, KEYWORDS, refuseKeyword, wrongType } from './keywords.ts';
import { isObject, refuse, show } from './problem.ts';

/**
 * Parses a JSON Schema (2020-12) into its subschemas. Throws `unsupported_schema` for a keyword, `$ref` or size that is
 * not supported, `invalid_type` and `invalid_value` for a malformed one.
 *
 * @param path the path of the schema in the caller's input, for messages
 */
export function parseSchema(schema: JsonSchema, path: string): SchemaDocument {
  const values = checkSize(schema, path);
  const subschemas: Draft[] = [];
  const add = (json: Json, at: string): number => subschemas.push(draft(json, at)) - 1;
  add(schema, path);
  // An explicit queue instead of recursion: children are appended while the list is read.
  for (let i = 0; i < subschemas.length; i++) read(at(subschemas, i), add);
  for (const subschema of subschemas) {
    if (subschema.refText !== undefined) subschema.ref = target(subschema, subschema.refText, subschemas);
  }
  refuseLoops(subschemas);
  return { subschemas, values };
}

type Draft = { -readonly [K in keyof Subschema]: Subschema[K] } & {
  json: Json;
  /** The indices of the child schemas, by keyword and by the child's name or index. */
  children: Map<string, ReadonlyMap<string | number, number>>;
  refText?: string;
};

function draft(json: Json, path: string): Draft {
  if (typeof json !== 'boolean' && !isObject(json)) wrongType(path, 'a schema (an object, true or false)', json);
  const has = new Set(isObject(json) ? Object.keys(json) : []);
  const nothing = json === false;
  return {
    json,
    children: new Map(),
    path,
    nothing,
    has,
    values: [],
    allOf: [],
    properties: new Map(),
    required: [],
    prefixItems: [],
  };
}

function read(draft: Draft, add: (json: Json, path: string) => number): void {
  if (!isObject(draft.json)) return;
  for (const [keyword, value] of Object.entries<Json>(draft.json)) {
    const path = pathTo(draft.path, keyword);
    const rule = KEYWORDS.get(keyword);
    if (!rule) refuseKeyword(path, keyword);
    if (rule.holds === 'value') {
      rule.check(value, path);
      store(draft, keyword, value);
      continue;
    }
    const ids = new Map(
      childrenOf(rule.holds, value, path).map(([name, json]) => [
        name,
        add(json, rule.holds === 'schema' ? path : pathTo(path, name)),
      ]),
    );
    draft.children.set(keyword, ids);
    // The children of `properties` have names.
    if (keyword === 'properties') draft.properties = ids as Map<string, number>;
    else if (keyword === 'items' || keyword === 'additionalProperties') draft[keyword] = ids.get('')!;
    else if (keyword !== '$defs') {
      draft[keyword as 'allOf' | 'anyOf' | 'oneOf' | 'prefixItems'] = [...ids.values()];
    }
  }
}

function store(draft: Draft, keyword: string, value: Json): void {
  switch (keyword) {
    case 'type':
      // The value of each keyword was checked before (`keywords.ts`); this holds for all casts below.
      draft.types = (Array.isArray(value) ? value : [value]) as TypeName[];
      break;
    case 'enum':
      draft.values = [...draft.values, value as Json[]];
      break;
    case 'const':
      draft.values = [...draft.values, [value]];
      break;
    case 'required':
      draft.required = value as string[];
      break;
    case '$ref':
      draft.refText = value as string;
      break;
    case 'pattern':
    case 'format':
      draft[keyword] = value as string;
      break;
    case 'minItems':
    case 'maxItems':
    case 'minLength':
    case 'maxLength':
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
    case 'multipleOf':
      draft[keyword] = value as number;
      break;
    default: // annotations
  }
}

/** The depth of a shorthand is checked both as it is sent and as it is expanded, where an object takes two levels. */
const TOO_DEEP = `is nested deeper than ${LIMITS.schemaDepth} (shorthand counts twice); use $defs and $ref.`;

/**
 * Refuses a schema with too many levels, values or characters, or with a number that is not finite, before anything
 * else is done with it. Returns the number of values.
 */
export function checkSize(schema: Json, path: string): number {
  const open: [Json, number][] = [[schema, 1]];
  let values = 0;
  let characters = 0;
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [value, depth] = top;
    if (typeof value === 'string') characters += value.length;
    else if (typeof value === 'number' && !Number.isFinite(value)) {
      refuse(path, 'has an infinite number.', 'invalid_value');
    } else if (typeof value === 'object' && value !== null) {
      if (depth > LIMITS.schemaDepth) refuse(path, TOO_DEEP);
      const names = Object.keys(value);
      values += names.length;
      if (values > LIMITS.schemaValues) {
        refuse(path, `has more than ${LIMITS.schemaValues} values; make it smaller.`);
      }
      for (const name of names) {
        if (!Array.isArray(value)) characters += name.length;
        // `isObject` or `Array.isArray` is true for it.
        open.push([(value as { readonly [name: string]: Json })[name]!, depth + 1]);
      }
    }
    if (characters > LIMITS.schemaCharacters) {
      refuse(path, `has more than ${LIMITS.schemaCharacters} characters in its names and texts; shorten them.`);
    }
  }
  return values;
}

/** Resolves a `$ref` inside the document (JSON Pointer, RFC 6901, as a URI fragment). */
function target(from: Draft, ref: string, subschemas: readonly Draft[]): number {
  const path = pathTo(from.path, '$ref');
  if (!ref.startsWith('#')) {
    refuse(path, `${show(ref)} leads outside this schema; put the target under $defs and use "#/$defs/...".`);
  }
  let pointer: string;
  try {
    pointer = decodeURIComponent(ref.slice(1));
  } catch {
    refuse(path, `${show(ref)} is not a valid URI fragment.`, 'invalid_value');
  }
  const id = pointedAt(pointer, subschemas);
  if (id === undefined) {
    refuse(path, `${show(ref)} leads to no schema in this document; use "#" or a pointer such as "#/$defs/name".`);
  }
  return id;
}

/** Returns the index of the schema that a JSON Pointer refers to; undefined if there is none. */
function pointedAt(pointer: string, subschemas: readonly Draft[]): number | undefined {
  const [root, ...steps] = pointer.split('/');
  if (root !== '') return undefined;
  let id: number | undefined = 0;
  for (let i = 0; i < steps.length && id !== undefined; ) {
    const keyword = at(steps, i++);
    const children = at(subschemas, id).children.get(keyword);
    const kind = KEYWORDS.get(keyword)?.holds;
    if (kind === 'schema') id = children?.get('');
    else {
      const name = steps[i++]?.replaceAll('~1', '/').replaceAll('~0', '~');
      if (name === undefined) return undefined;
      id = children?.get(kind === 'schemas' && /^(0|[1-9]\d{0,5})$/.test(name) ? Number(name) : name);
    }
  }
  return id;
}

/**
 * Refuses a schema that refers to itself in place (through `$ref`, `allOf`, `anyOf` or `oneOf` only), because that says
 * nothing about a value. A reference through a property or an item is allowed.
 */
function refuseLoops(subschemas: readonly Draft[]): void {
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
            'refers to itself without a step into a property or an item, so it says nothing.',
          );
        }
        if (state[next] === 0) open.push(next);
      }
    }
  }
}
