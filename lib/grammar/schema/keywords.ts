import type { Json } from '../../answer-shape.ts';
import { pathTo } from '../../param-path.ts';
import { TYPES, type TypeName } from './document.ts';
import { isObject, refuse, show } from './problem.ts';

/** The values of `format` that are enforced; all others are refused. */
export const FORMATS = [
  'date',
  'time',
  'date-time',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uri',
  'uuid',
] as const;
export type Format = (typeof FORMATS)[number];

/** Describes the value of a keyword: a schema, a list or map of schemas, or a value that `check` validates. */
type Keyword =
  | { holds: 'schema' | 'schemas' | 'schema map' }
  /** `annotation` is true if the keyword has no effect on the answer. */
  | { holds: 'value'; check(value: Json, path: string): void; annotation?: true };

const value = (check: (value: Json, path: string) => void): Keyword => ({ holds: 'value', check });
const annotation = (check: (value: Json, path: string) => void): Keyword => ({
  holds: 'value',
  check,
  annotation: true,
});

const checkText = (v: Json, path: string): void => {
  if (typeof v !== 'string') wrongType(path, 'a string', v);
};
const text = value(checkText);
const note = annotation(checkText);
const anything = () => {};
const flag = annotation((v, path) => {
  if (typeof v !== 'boolean') wrongType(path, 'true or false', v);
});
const finite = value((v, path) => {
  if (typeof v !== 'number' || !Number.isFinite(v)) wrongType(path, 'a number', v);
});
const count = value((v, path) => {
  if (typeof v !== 'number') wrongType(path, 'a whole number', v);
  if (!Number.isInteger(v) || v < 0) refuse(path, `must be a whole number from 0, not ${show(v)}.`, 'invalid_value');
});

/** Every keyword that a schema may have. Any other is refused: nothing is ignored silently. */
export const KEYWORDS: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ['type', value(checkType)],
  ['properties', { holds: 'schema map' }],
  ['required', value(checkRequired)],
  ['additionalProperties', { holds: 'schema' }],
  ['items', { holds: 'schema' }],
  ['prefixItems', { holds: 'schemas' }],
  ['minItems', count],
  ['maxItems', count],
  ['enum', value(checkEnum)],
  ['const', value(anything)],
  ['anyOf', { holds: 'schemas' }],
  ['oneOf', { holds: 'schemas' }],
  ['allOf', { holds: 'schemas' }],
  ['$ref', text],
  ['$defs', { holds: 'schema map' }],
  ['minLength', count],
  ['maxLength', count],
  ['pattern', text],
  ['format', value(checkFormat)],
  ['minimum', finite],
  ['maximum', finite],
  ['exclusiveMinimum', finite],
  ['exclusiveMaximum', finite],
  ['multipleOf', value(checkMultipleOf)],
  ['title', note],
  ['description', note],
  ['default', annotation(anything)],
  ['examples', annotation(checkList)],
  ['$schema', note],
  ['$id', annotation(checkId)],
  ['$comment', note],
  ['propertyNames', annotation(checkAnyName)],
  ['deprecated', flag],
  ['readOnly', flag],
  ['writeOnly', flag],
  // OpenAPI's hint which of the alternatives to read; the alternatives themselves are enforced.
  ['discriminator', annotation((v, path) => (isObject(v) ? undefined : wrongType(path, 'an object', v)))],
]);

/** Keywords of `KEYWORDS` that have no effect on answers and say nothing about them, but that libraries often write. */
export const WITHOUT_EFFECT = ['propertyNames', 'deprecated', 'readOnly', 'writeOnly', 'discriminator'] as const;

/** Hints for some unsupported keywords: what to write instead. */
const INSTEAD: { readonly [keyword: string]: string } = {
  definitions: 'Use `$defs`.',
  not: 'Say what is allowed with `enum`, `pattern` or `oneOf`.',
  nullable: 'Add "null" to the `type` list.',
  patternProperties: 'Name the properties, or use `additionalProperties`.',
  additionalItems: 'Use `prefixItems` and `items`.',
};

/**
 * Throws `unsupported_schema` for a keyword that is not in `KEYWORDS`.
 *
 * @param schema the schema that has the keyword: if it has no known one, it may be a shorthand with a mistake
 */
export function refuseKeyword(path: string, keyword: string, schema: object): never {
  const instead = Object.hasOwn(INSTEAD, keyword) ? ` ${INSTEAD[keyword]}` : '';
  const shorthand = Object.keys(schema).some((name) => KEYWORDS.has(name)) ? '' : ` ${SHORTHAND}`;
  const problem = `the keyword ${show(keyword)} is not supported, and keywords are never ignored; remove it.`;
  refuse(path, problem + instead + shorthand);
}

const SHORTHAND =
  'If this is meant as the shorthand, which tasks and questions accept: every value is "string", "number", "integer", ' +
  '"boolean", a list of one of them, or an object.';

/** Throws `invalid_type` for the schema's part at `path`, whose value is `got`. `wanted` completes "must be …". */
export function wrongType(path: string, wanted: string, got: Json): never {
  refuse(path, `must be ${wanted}, not ${show(got)}.`, 'invalid_type');
}

function checkType(v: Json, path: string): void {
  const names: readonly Json[] = Array.isArray(v) ? v : [v];
  if (names.length === 0) refuse(path, 'needs at least one type name.', 'invalid_value');
  names.forEach((name, i) => {
    const at = Array.isArray(v) ? pathTo(path, i) : path;
    if (typeof name !== 'string') wrongType(at, 'a type name', name);
    // `includes` compares only.
    if (!TYPES.includes(name as TypeName)) {
      refuse(at, `${show(name)} is not a type; use one of ${TYPES.join(', ')}.`, 'invalid_value');
    }
    if (names.indexOf(name) !== i) refuse(at, `${show(name)} occurs twice; remove one.`, 'invalid_value');
  });
}

function checkRequired(v: Json, path: string): void {
  checkList(v, path).forEach((name, i, names) => {
    if (typeof name !== 'string') wrongType(pathTo(path, i), 'a property name', name);
    // Done once for the whole list with a set, because comparing each pair of a long list would be slow.
    if (i === 0 && new Set(names).size !== names.length)
      refuse(path, 'a name occurs twice; remove one.', 'invalid_value');
  });
}

function checkEnum(v: Json, path: string): void {
  if (checkList(v, path).length === 0) refuse(path, 'needs at least one value.', 'invalid_value');
}

function checkList(v: Json, path: string): readonly Json[] {
  if (!Array.isArray(v)) wrongType(path, 'a list', v);
  return v as readonly Json[];
}

/**
 * Tells whether a `pattern` beside an unknown `format` says what the format means, as zod writes its formats. The
 * pattern is enforced, and the format is then a mere name.
 */
export function patternDefinesFormat({ format, pattern }: { readonly [keyword: string]: Json }): boolean {
  return typeof format === 'string' && typeof pattern === 'string' && !FORMATS.includes(format as Format);
}

function checkFormat(v: Json, path: string): void {
  if (typeof v !== 'string') wrongType(path, 'a string', v);
  // `includes` compares only.
  if (!FORMATS.includes(v as Format)) refuseFormat(v, path);
}

/** Throws `unsupported_schema` for a format that is not in `FORMATS`. */
export function refuseFormat(format: Json | undefined, path: string): never {
  refuse(path, `the format ${show(format)} cannot be enforced; use one of ${FORMATS.join(', ')}, or a \`pattern\`.`);
}

/** Accepts only schemas that all names obey. Names are always strings, and zod says so of each record. */
function checkAnyName(v: Json, path: string): void {
  if (v === true || (isObject(v) && Object.entries(v).every(([name, one]) => name === 'type' && one === 'string')))
    return;
  refuse(path, 'limits the names, which is not supported; name the properties in `properties`.');
}

function checkId(v: Json, path: string): void {
  checkText(v, path);
  // A fragment was a name for the schema until draft 7, and would not begin a schema of its own.
  if (/#./s.test(String(v)))
    refuse(path, `must not have a fragment, as ${show(v)} has; use $defs and $ref.`, 'invalid_value');
}

function checkMultipleOf(v: Json, path: string): void {
  if (typeof v !== 'number' || !Number.isFinite(v)) wrongType(path, 'a number', v);
  if (v <= 0) refuse(path, `must be above 0, not ${show(v)}.`, 'invalid_value');
}

/**
 * Returns the child schemas in the value of a keyword, each with its name or index; an only child has the name ''.
 * Throws `invalid_type` if the value is not a list (`schemas`) or not an object (`schema map`), and `invalid_value` for
 * an empty list. Does not check the children.
 */
export function childrenOf(
  kind: 'schema' | 'schemas' | 'schema map',
  v: Json,
  path: string,
): [string | number, Json][] {
  if (kind === 'schema') return [['', v]];
  if (kind === 'schemas') {
    if (!Array.isArray(v)) wrongType(path, 'a list of schemas', v);
    if (v.length === 0) refuse(path, 'needs at least one schema.', 'invalid_value');
    return [...v.entries()];
  }
  if (!isObject(v)) wrongType(path, 'an object of schemas', v);
  return Object.entries(v);
}
