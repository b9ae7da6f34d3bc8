import type { Json, JsonSchema } from '../../answer-shape.ts';
import { pathTo } from '../../param-path.ts';
import { LIMITS } from '../limits.ts';
import type { SchemaDocument, Subschema, TypeName } from './document.ts';
import { childrenOf, KEYWORDS, refuseKeyword, wrongType } from './keywords.ts';
import { isObject, refuse, show } from './problem.ts';

/**
 * Parses a JSON Schema (2020-12) into its subschemas. Throws `unsupported_schema` for a keyword, `$ref` or size that cannot be
 * kept to, `invalid_type` and `invalid_value` for a malformed one.
 *
 * @param path where the schema stands in the request, such as `tasks[0].schema`
 */
export function parseSchema(schema: JsonSchema, path: string): SchemaDocument {
  measure(schema, path);
  const subschemas: Draft[] = [];
  const byPointer = new Map<string, number>();
  const add = (json: Json, at: string, pointer: string): number => {
    byPointer.set(pointer, subschemas.length);
    return subschemas.push(draft(json, at, pointer)) - 1;
  };
  add(schema, path, '');
  // Children are appended while the list is read: an explicit queue instead of recursion.
  for (let i = 0; i < subschemas.length; i++) read(subschemas[i]!, add);
  for (const subschema of subschemas) {
    if (subschema.refText !== undefined) subschema.ref = target(subschema, subschema.refText, byPointer);
  }
  refuseLoops(subschemas);
  return { subschemas };
}

type Draft = { -readonly [K in keyof Subschema]: Subschema[K] } & { json: Json; pointer: string; refText?: string };

function draft(json: Json, path: string, pointer: string): Draft {
  if (typeof json !== 'boolean' && !isObject(json)) wrongType(path, 'a schema (an object, true or false)', json);
  const has = new Set(isObject(json) ? Object.keys(json) : []);
  const nothing = json === false;
  return {
    json,
    pointer,
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

function read(draft: Draft, add: (json: Json, path: string, pointer: string) => number): void {
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
    const ids = childrenOf(rule.holds, value, path).map(([name, json]): [string | number, number] => {
      const at = rule.holds === 'schema' ? path : typeof name === 'number' ? pathTo(path, name) : pathTo(path, name);
      const pointer = rule.holds === 'schema' ? `/${keyword}` : `/${keyword}/${escapePointer(String(name))}`;
      return [name, add(json, at, draft.pointer + pointer)];
    });
    if (keyword === 'properties') draft.properties = new Map(ids as [string, number][]);
    else if (keyword === 'items' || keyword === 'additionalProperties') draft[keyword] = ids[0]![1];
    else if (keyword !== '$defs') {
      draft[keyword as 'allOf' | 'anyOf' | 'oneOf' | 'prefixItems'] = ids.map(([, id]) => id);
    }
  }
}

function store(draft: Draft, keyword: string, value: Json): void {
  switch (keyword) {
    case 'type':
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

/** Depth and size, before anything else is looked at. */
function measure(schema: Json, path: string): void {
  const open: [Json, number][] = [[schema, 1]];
  let values = 0;
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const [value, depth] = top;
    if (typeof value !== 'object' || value === null) continue;
    if (depth > LIMITS.schemaDepth) refuse(path, `is nested deeper than ${LIMITS.schemaDepth}; use $defs and $ref.`);
    const children = Object.values(value) as Json[];
    values += children.length;
    if (values > LIMITS.schemaValues) {
      refuse(path, `has more than ${LIMITS.schemaValues} values; ask for less in one task.`);
    }
    for (const child of children) open.push([child, depth + 1]);
  }
}

/** Resolves a `$ref` inside the document (JSON Pointer, RFC 6901, as a URI fragment). */
function target(from: Draft, ref: string, byPointer: ReadonlyMap<string, number>): number {
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
  const id = byPointer.get(pointer);
  if (id === undefined) {
    refuse(path, `${show(ref)} leads to no schema in this document; use "#" or a pointer such as "#/$defs/name".`);
  }
  return id;
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** A schema may come back to itself through a property or an item, but not in place: that says nothing. */
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
      for (const next of inPlace(subschemas[id]!)) {
        if (state[next] === 1) {
          refuse(
            subschemas[id]!.path,
            'refers to itself without a step into a property or an item, so it says nothing.',
          );
        }
        if (state[next] === 0) open.push(next);
      }
    }
  }
}
