import { at } from '../../at.ts';
import type { Json, JsonSchema } from '../../contract/answer-shape.ts';
import { isObject } from '../../json/property.ts';
import { pathTo } from '../../param-path.ts';
import { canonical, isOfType } from '../resolve/matches.ts';
import { isStringFormat } from '../text/compile-string.ts';
import { checkSize, type SchemaDocument, type Subschema, type TypeName } from './document.ts';
import { checkUnknown, childrenOf, holdingOf, isAnnotation, KEYWORDS, NUMBER_FORMATS, wrongType } from './keywords.ts';
import { refuse, show } from './problem.ts';

/**
 * Parses a JSON Schema into its subschemas: 2020-12, and what generators still write of earlier drafts and of OpenAPI
 * 3.0 (`definitions`, `items` as a list, `nullable`, `exclusiveMinimum` as a flag).
 *
 * @param path path of the schema in the caller's input, for error messages
 * @throws AssayError `unsupported_schema` for a keyword, `$ref` or size that is not supported; `invalid_type` or
 *   `invalid_value` for a malformed schema
 */
export function parseSchema(schema: JsonSchema, path: string): SchemaDocument {
  const values = checkSize(schema, path);
  const subschemas: Draft[] = [];
  const add = (json: Json, at: string, resource: number): number => {
    const made = draft(json, at);
    // An `$id` begins a schema of its own, to which the references in it are relative.
    made.resource = made.has.has('$id') ? subschemas.length : resource;
    return subschemas.push(made) - 1;
  };
  add(schema, path, 0);
  // A queue instead of recursion: `read` appends the children to the list during this loop.
  for (let i = 0; i < subschemas.length; i++) read(at(subschemas, i), add);
  for (const subschema of subschemas) {
    if (subschema.refText !== undefined) subschema.ref = target(subschema, subschema.refText, subschemas);
  }
  mergeConstants(subschemas);
  refuseLoops(subschemas);
  return { subschemas, values };
}

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
    patternProperties: new Map(),
    required: [],
    prefixItems: [],
    resource: 0,
  };
}

type Add = (json: Json, path: string, resource: number) => number;

function read(draft: Draft, add: Add): void {
  const { json } = draft;
  if (!isObject(json)) return;
  if (json.nullable === true) {
    readNullable(draft, json, add);
    return;
  }
  for (const [keyword, value] of Object.entries<Json>(json)) {
    const path = pathTo(draft.path, keyword);
    const rule = KEYWORDS.get(keyword);
    const holds = holdingOf(keyword, value);
    if (!rule) checkUnknown(keyword, value, json, path);
    else if (rule.holds === 'value') {
      rule.check(value, path);
      if (!rule.annotation) store(draft, keyword, value);
    } else if (holds !== 'value') {
      const ids = new Map(
        childrenOf(keyword, holds, value, path).map(([name, child]) => [
          name,
          add(child, holds === 'schema' ? path : pathTo(path, name), draft.resource),
        ]),
      );
      draft.children.set(keyword, ids);
      storeSchemas(draft, keyword, ids);
    }
  }
  settleNumbers(draft);
  settleLength(draft);
}

/** Reads `nullable: true` as the choice between null and what the other keywords say. */
function readNullable(draft: Draft, json: { readonly [keyword: string]: Json }, add: Add): void {
  const { nullable: _, $id: __, ...rest } = json;
  const value = add(rest, draft.path, draft.resource);
  const none = add({ type: 'null' }, draft.path, draft.resource);
  draft.anyOf = [value, none];
  draft.has = new Set(['anyOf']);
  draft.inner = value;
}

function storeSchemas(draft: Draft, keyword: string, ids: ReadonlyMap<string | number, number>): void {
  const only = ids.get('');
  switch (keyword) {
    case 'properties':
    case 'patternProperties':
      // The casts are safe: the children of a map have names, and the other keywords below hold lists.
      draft[keyword] = ids as ReadonlyMap<string, number>;
      break;
    case 'items':
    case 'prefixItems':
      if (only !== undefined) draft.items = only;
      else if (draft.prefixItems.length > 0) {
        refuse(pathTo(draft.path, keyword), 'stands beside another list of schemas for the first items; use one.');
      } else draft.prefixItems = [...ids.values()];
      break;
    case 'additionalItems':
      // Has a meaning only beside `items` as a list.
      if (only !== undefined && isObject(draft.json) && Array.isArray(draft.json.items)) draft.items = only;
      break;
    case 'additionalProperties':
    case 'propertyNames':
    case 'unevaluatedProperties':
      if (only !== undefined) draft[keyword] = only;
      break;
    case 'allOf':
    case 'anyOf':
    case 'oneOf':
      draft[keyword] = [...ids.values()];
      break;
    default: // definitions
  }
}

function store(draft: Draft, keyword: string, value: Json): void {
  switch (keyword) {
    case 'type':
      // All casts in this function are safe, because `read` has checked the value.
      draft.types = (Array.isArray(value) ? value : [value]) as TypeName[];
      break;
    case 'enum':
      draft.values = [...draft.values, value as Json[]];
      break;
    case 'const':
      draft.values = [...draft.values, [value]];
      break;
    case 'not':
      draft.nothing = value !== false;
      break;
    case '$ref':
      draft.refText = value as string;
      break;
    case 'format':
      // Any other format says nothing about the text.
      if (isStringFormat(value)) draft.format = value;
      else draft.has = new Set([...draft.has].filter((name) => name !== 'format'));
      break;
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      if (typeof value === 'number') draft[keyword] = value;
      break;
    case 'nullable':
      break;
    // A subschema has the other keywords as they are.
    default:
      Object.assign(draft, { [keyword]: value });
  }
}

/** A lookahead at the start of a pattern that only bounds the length, as zod's pattern of host names has it. */
const LENGTH_AHEAD = /^\^\(\?=\.\{(\d{1,6}),(\d{1,6})\}(?:\\\.\?)?\$\)(.*)$/su;

/**
 * Turns a lookahead that only bounds the length into `minLength` and `maxLength`, which cost no states. Leaves one
 * beside a pattern that could match the end of a line, which the lookahead's dot excludes.
 */
function settleLength(draft: Draft): void {
  const [, min, max, rest = ''] = LENGTH_AHEAD.exec(draft.pattern ?? '') ?? [];
  if (min === undefined || /\[\^|\\[sSDWPnr]|\|/.test(rest)) return;
  draft.pattern = `^${rest}`;
  draft.minLength = Math.max(Number(min), draft.minLength ?? 0);
  draft.maxLength = Math.min(Number(max), draft.maxLength ?? Infinity);
}

/** Settles the bounds of a number: those of its format, and `exclusiveMinimum` and `exclusiveMaximum` as flags. */
function settleNumbers(draft: Draft): void {
  const { format, exclusiveMinimum, exclusiveMaximum } = draft.json as { readonly [keyword: string]: Json };
  if (exclusiveMinimum === true && draft.minimum !== undefined) draft.exclusiveMinimum = draft.minimum;
  if (exclusiveMaximum === true && draft.maximum !== undefined) draft.exclusiveMaximum = draft.maximum;
  const range = NUMBER_FORMATS.get(String(format));
  if (!range) return;
  draft.minimum = Math.max(range[0], draft.minimum ?? -Infinity);
  const maximum = Math.min(range[1], draft.maximum ?? Infinity);
  if (maximum < Infinity) draft.maximum = maximum;
  if (!draft.types) draft.has = new Set([...draft.has, 'minimum']);
}

/** Number of constant alternatives from which they are merged; fewer are cheap, and keep their order. */
const MANY = 16;

/**
 * Merges many constant alternatives (`const` or `enum`, perhaps with `type`) of one `anyOf` or `oneOf` into a single
 * one, as generators write an enumeration whose values have descriptions. A value that two branches of a `oneOf` have
 * in common is valid in neither.
 */
function mergeConstants(subschemas: Draft[]): void {
  for (const draft of [...subschemas]) {
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const branches = draft[keyword] ?? [];
      const constants = branches.filter((id) => isConstant(at(subschemas, id)));
      if (constants.length < MANY) continue;
      const counts = new Map<string, number>();
      const all = constants.flatMap((id) => valuesOf(at(subschemas, id)));
      for (const value of all) counts.set(canonical(value), (counts.get(canonical(value)) ?? 0) + 1);
      const fresh = keyword === 'anyOf' ? all : all.filter((value) => counts.get(canonical(value)) === 1);
      const { types: _, ...first } = at(subschemas, at(constants, 0));
      const merged = subschemas.push({ ...first, json: true, values: [fresh], has: new Set(['enum']) }) - 1;
      const rest = branches.filter((id) => !constants.includes(id));
      const place = branches.indexOf(at(constants, 0));
      draft[keyword] = [...rest.slice(0, place), merged, ...rest.slice(place)];
    }
  }
}

function isConstant({ has, values, nothing }: Draft): boolean {
  return (
    values.length === 1 &&
    !nothing &&
    [...has].every((name) => ['const', 'enum', 'type'].includes(name) || isAnnotation(name))
  );
}

function valuesOf({ values, types }: Draft): readonly Json[] {
  return at(values, 0).filter((value) => !types || types.some((type) => isOfType(value, type)));
}

/** Represents a subschema while the document is parsed, before its `$ref` is resolved. */
type Draft = { -readonly [K in keyof Subschema]: Subschema[K] } & {
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
function target(from: Draft, ref: string, subschemas: readonly Draft[]): number {
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
            'refers to itself without a step into a property or an item, so it says nothing; remove the reference.',
          );
        }
        if (state[next] === 0) open.push(next);
      }
    }
  }
}
