import type { Json } from '../../contract/answer-shape.ts';
import { isObject } from '../../json/property.ts';
import { nearestName } from '../../nearest-name.ts';
import { pathTo } from '../../param-path.ts';
import { TYPES, type TypeName } from './document.ts';
import { refuse, show } from './problem.ts';

/** Ranges of the formats that OpenAPI and schemars give to integers, as far as a double distinguishes them. */
export const NUMBER_FORMATS: ReadonlyMap<string, readonly [minimum: number, maximum: number]> = new Map([
  ...[8, 16, 32].flatMap((bits) => [
    [`int${bits}`, [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]] as const,
    [`uint${bits}`, [0, 2 ** bits - 1]] as const,
  ]),
  ...['uint', 'uint64', 'uint128'].map((name) => [name, [0, Infinity]] as const),
]);

/** Describes the value of a keyword: a schema, a list or map of schemas, or a value that `check` validates. */
type Keyword = {
  /** The only type of values that the keyword applies to. In a schema without `type`, it implies that type. */
  of?: TypeName;
} & (
  | { holds: 'schema' | 'schemas' | 'schema map' }
  | {
      holds: 'value';
      check(value: Json, path: string): void;
      /** True if the keyword has no effect on the answer. */
      annotation?: true;
      /** True if the value bounds a number, a length or a count. */
      bounds?: true;
    }
);

const value = (check: (value: Json, path: string) => void): Keyword => ({ holds: 'value', check });
const bound = (check: (value: Json, path: string) => void): Keyword => ({ holds: 'value', check, bounds: true });
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
const checkFlag = (v: Json, path: string): void => {
  if (typeof v !== 'boolean') wrongType(path, 'true or false', v);
};
const flag = value(checkFlag);
const hint = annotation(checkFlag);
const checkFinite = (v: Json, path: string): void => {
  if (typeof v !== 'number' || !Number.isFinite(v)) wrongType(path, 'a number', v);
};
const finite = bound(checkFinite);
const exclusive = bound((v, path) => {
  if (typeof v !== 'boolean') checkFinite(v, path);
});
const count = bound((v, path) => {
  if (typeof v !== 'number') wrongType(path, 'a whole number', v);
  if (!Number.isInteger(v) || v < 0) refuse(path, `must be a whole number from 0, not ${show(v)}.`, 'invalid_value');
});

/**
 * The keywords that have a meaning here. The assertions of JSON Schema that are not among them are refused by name
 * (`UNSUPPORTED`); any other word is an annotation.
 */
export const KEYWORDS: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ['type', value(checkType)],
  ['properties', { holds: 'schema map', of: 'object' }],
  ['required', { ...value(checkRequired), of: 'object' }],
  ['additionalProperties', { holds: 'schema', of: 'object' }],
  ['patternProperties', { holds: 'schema map', of: 'object' }],
  ['propertyNames', { holds: 'schema', of: 'object' }],
  ['unevaluatedProperties', { holds: 'schema', of: 'object' }],
  ['minProperties', { ...count, of: 'object' }],
  ['maxProperties', { ...count, of: 'object' }],
  ['items', { holds: 'schema', of: 'array' }],
  ['prefixItems', { holds: 'schemas', of: 'array' }],
  ['additionalItems', { holds: 'schema' }],
  ['minItems', { ...count, of: 'array' }],
  ['maxItems', { ...count, of: 'array' }],
  ['uniqueItems', { ...flag, of: 'array' }],
  ['enum', value(checkEnum)],
  ['const', value(anything)],
  ['anyOf', { holds: 'schemas' }],
  ['oneOf', { holds: 'schemas' }],
  ['allOf', { holds: 'schemas' }],
  ['not', value(checkNot)],
  ['nullable', flag],
  ['$ref', text],
  ['$anchor', note],
  ['$defs', { holds: 'schema map' }],
  ['definitions', { holds: 'schema map' }],
  ['minLength', { ...count, of: 'string' }],
  ['maxLength', { ...count, of: 'string' }],
  ['pattern', { ...text, of: 'string' }],
  ['format', { ...text, of: 'string' }],
  ['minimum', { ...finite, of: 'number' }],
  ['maximum', { ...finite, of: 'number' }],
  // True or false in the drafts before 6 and in OpenAPI 3.0, where `minimum` has the bound.
  ['exclusiveMinimum', { ...exclusive, of: 'number' }],
  ['exclusiveMaximum', { ...exclusive, of: 'number' }],
  ['multipleOf', { ...value(checkMultipleOf), of: 'number' }],
  ['title', note],
  ['description', note],
  ['default', annotation(anything)],
  ['examples', annotation(checkList)],
  ['$schema', note],
  ['$id', annotation(checkId)],
  ['$comment', note],
  ['deprecated', hint],
  ['readOnly', hint],
  ['writeOnly', hint],
  // OpenAPI's hint which of the alternatives to read; the alternatives themselves are enforced.
  ['discriminator', annotation((v, path) => (isObject(v) ? undefined : wrongType(path, 'an object', v)))],
]);

/** Annotations that a prompt shows, because they may help the model. */
export const SHOWN_ANNOTATIONS: readonly string[] = ['title', 'description', 'default', 'examples'];

/** The assertions of JSON Schema that cannot be enforced, each with what to write instead. */
const UNSUPPORTED: ReadonlyMap<string, string> = new Map([
  ...['if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'dependencies'].map(
    (name) => [name, 'Write the cases as branches of `anyOf`.'] as const,
  ),
  ...['contains', 'minContains', 'maxContains'].map((name) => [name, 'Put the items into `prefixItems`.'] as const),
  ['unevaluatedItems', 'Use `items` or `maxItems`.'],
  ...['$dynamicRef', '$recursiveRef'].map((name) => [name, 'Use `$ref`.'] as const),
  ['extends', 'Use `allOf`.'],
  ['disallow', 'Say what is allowed with `enum`, `pattern` or `oneOf`.'],
  ['divisibleBy', 'Use `multipleOf`.'],
]);

/** Keywords of which a misspelt one must not pass as an annotation: those with an effect. */
const ENFORCED = [...KEYWORDS].flatMap(([name, rule]) =>
  name.length < 4 || (rule.holds === 'value' && rule.annotation) ? [] : [name],
);

/**
 * Accepts a word that is not in `KEYWORDS` as an annotation: JSON Schema gives no meaning to it. Throws
 * `unsupported_schema` for an assertion of JSON Schema, for a word that is probably a misspelt keyword or the name of a
 * property, and for one in a schema without any keyword, which is probably a shorthand with a mistake.
 */
export function checkUnknown(keyword: string, v: Json, schema: object, path: string): void {
  const instead = UNSUPPORTED.get(keyword);
  if (instead !== undefined) {
    if (isObject(v) && Object.keys(v).length === 0) return;
    refuse(path, `the keyword ${show(keyword)} cannot be enforced, and is never ignored; remove it. ${instead}`);
  }
  // Names with a prefix are extensions: `x-order`, `ui:widget`, `_id`.
  if (/^[xX]-|[:._]/.test(keyword)) return;
  const meant = nearestName(keyword, ENFORCED);
  if (meant !== undefined && !ANNOTATIONS.has(keyword)) {
    refuse(path, `${show(keyword)} is not a keyword; did you mean \`${meant}\`? Begin a note of your own with \`x-\`.`);
  }
  if (looksLikeSchema(v) && !ANNOTATIONS.has(keyword)) {
    refuse(
      path,
      `${show(keyword)} is not a keyword, but its value is a schema; put it into \`properties\`. ${SHORTHAND}`,
    );
  }
  const known = (name: string) => KEYWORDS.has(name) || ANNOTATIONS.has(name) || /^[xX]-/.test(name);
  if (!Object.keys(schema).some(known)) refuse(path, `${show(keyword)} is not a keyword; remove it. ${SHORTHAND}`);
}

function looksLikeSchema(v: Json): boolean {
  const type = isObject(v) ? v.type : v;
  // `includes` compares only.
  return TYPES.includes(type as TypeName) || (isObject(v) && typeof v.$ref === 'string');
}

/** Annotations of OpenAPI, of editors, of generators and of older drafts that may stand alone in a schema. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  'example',
  'markdownDescription',
  'enumDescriptions',
  'markdownEnumDescriptions',
  'enumNames',
  'tsType',
  'tsEnumNames',
  'propertyOrder',
  'errorMessage',
  'deprecationMessage',
  'externalDocs',
  'xml',
  'contentEncoding',
  'contentMediaType',
  'contentSchema',
  '$vocabulary',
  '$dynamicAnchor',
  '$recursiveAnchor',
  'id',
]);

/** Tells whether a word in a schema says nothing about the values. */
export function isAnnotation(keyword: string): boolean {
  const rule = KEYWORDS.get(keyword);
  return !rule || (rule.holds === 'value' && rule.annotation === true);
}

const SHORTHAND =
  'If this is meant as the shorthand, which tasks and questions accept: every value is "string", "number", "integer", ' +
  '"boolean", a list of one of them, or an object. An object whose only member is `type` is JSON Schema.';

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

/** Accepts only the schemas `true`, `false` and `{}`, as in `{"not": {}}`, which is the schema `false`. */
function checkNot(v: Json, path: string): void {
  if (typeof v === 'boolean' || (isObject(v) && Object.keys(v).length === 0)) return;
  refuse(
    path,
    'the keyword "not" can be enforced only with `{}`; say what is allowed with `enum`, `pattern` or `oneOf`.',
  );
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

type Holding = 'schema' | 'schemas' | 'schema map';

/**
 * Returns what the value of a keyword is: a schema, a list or map of schemas, or `value` for anything else. `items` is
 * a list of schemas in the drafts before 2020-12, where later ones have `prefixItems`.
 */
export function holdingOf(keyword: string, v: Json | undefined): Holding | 'value' {
  return keyword === 'items' && Array.isArray(v) ? 'schemas' : (KEYWORDS.get(keyword)?.holds ?? 'value');
}

/**
 * Returns the child schemas in the value of a keyword, each with its name or index; an only child has the name ''.
 * Throws `invalid_type` if the value is not a list (`schemas`) or not an object (`schema map`), and `invalid_value` for
 * an empty list of alternatives. Does not check the children.
 */
export function childrenOf(keyword: string, kind: Holding, v: Json, path: string): [string | number, Json][] {
  if (kind === 'schema') return [['', v]];
  if (kind === 'schemas') {
    if (!Array.isArray(v)) wrongType(path, 'a list of schemas', v);
    if (v.length === 0 && !keyword.endsWith('tems')) refuse(path, 'needs at least one schema.', 'invalid_value');
    return [...v.entries()];
  }
  if (!isObject(v)) wrongType(path, 'an object of schemas', v);
  return Object.entries(v);
}
