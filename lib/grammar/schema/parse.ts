import type { Json, JsonSchema } from '../../answer-shape.ts';
import { at } from '../../at.ts';
import { pathTo } from '../../param-path.ts';
import { checkSize } from './check-size.ts';
import type { SchemaDocument, TypeName } from './document.ts';
import { childrenOf, KEYWORDS, patternDefinesFormat, refuseKeyword, wrongType } from './keywords.ts';
import { isObject } from './problem.ts';
import { type Draft, refuseLoops, target } from './references.ts';

/**
 * Parses a JSON Schema (2020-12) into its subschemas.
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
    required: [],
    prefixItems: [],
    resource: 0,
  };
}

function read(draft: Draft, add: (json: Json, path: string, resource: number) => number): void {
  if (!isObject(draft.json)) return;
  for (const [keyword, value] of Object.entries<Json>(draft.json)) {
    const path = pathTo(draft.path, keyword);
    const rule = KEYWORDS.get(keyword);
    if (!rule) refuseKeyword(path, keyword, draft.json);
    if (rule.holds === 'value') {
      if (keyword === 'format' && patternDefinesFormat(draft.json)) continue;
      rule.check(value, path);
      store(draft, keyword, value);
      continue;
    }
    const ids = new Map(
      childrenOf(rule.holds, value, path).map(([name, json]) => [
        name,
        add(json, rule.holds === 'schema' ? path : pathTo(path, name), draft.resource),
      ]),
    );
    draft.children.set(keyword, ids);
    // The cast is safe, because the children of `properties` have names, not indices.
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
      // All casts in this function are safe, because `read` has checked the value.
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
