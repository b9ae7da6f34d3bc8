import type { AnswerShape, Json, JsonSchema } from '../../../lib/contract/answer-shape.ts';
import { AssayError } from '../../../lib/errors.ts';
import { isObject } from '../../../lib/json/property.ts';

/** Describes a property that a span model answers. */
export type ExtractField = { name: string; description?: string; nullable: boolean; needed: boolean } & (
  | { kind: 'text' | 'texts' }
  | { kind: 'boolean' }
  | { kind: 'class'; values: readonly Json[] }
  | { kind: 'classes'; values: readonly Json[] }
  | { kind: 'structures'; fields: readonly StructureField[] }
);

/** Describes a property of the objects in a list. */
export interface StructureField {
  name: string;
  kind: 'text' | 'texts';
  /** Values to choose from; absent for text of the input. */
  choices?: readonly string[];
  nullable: boolean;
  /** True if the schema requires a value other than null. */
  needed: boolean;
}

/** Keywords that say nothing about the values. */
const ANNOTATIONS = new Set([
  'title',
  'description',
  'examples',
  'default',
  '$schema',
  '$id',
  '$comment',
  'deprecated',
]);

/**
 * Returns the fields of an answer's shape. Throws `unsupported_schema` with the name of a property that is no text,
 * list of texts, choice, boolean or list of flat objects; `unsupported_parameter` if the shape names no fields.
 */
export function fieldsOfShape(shape: AnswerShape, { structures }: { structures: boolean }): ExtractField[] {
  switch (shape.kind) {
    case 'keys':
      return shape.keys.map((name) => ({ name, kind: 'text', nullable: true, needed: false }));
    case 'schema': {
      const fields = objectFields(shape.schema, '', structures);
      const { keys } = shape;
      return keys ? keys.flatMap((key) => fields.find(({ name }) => name === key) ?? []) : fields;
    }
    default: {
      const message = 'This model finds fields that are named. Send keys or a schema, or load a generative model.';
      throw new AssayError('unsupported_parameter', message);
    }
  }
}

function objectFields(schema: JsonSchema, path: string, structures: boolean): ExtractField[] {
  const { type, properties, required, additionalProperties: _, ...rest } = schema;
  checkKeywords(rest, path);
  if ((type !== undefined && type !== 'object') || !isObject(properties))
    throw unsupported(path, 'an object with properties');
  const names = Array.isArray(required) ? required : [];
  return Object.entries(properties).map(([name, property]) =>
    fieldOf(name, isObject(property) ? property : {}, {
      path: path ? `${path}.${name}` : name,
      required: names.includes(name),
      structures,
    }),
  );
}

interface Place {
  path: string;
  required: boolean;
  structures: boolean;
}

function fieldOf(name: string, property: JsonSchema, { path, required, structures }: Place): ExtractField {
  const { type, enum: values, const: only, items, ...rest } = property;
  const types = Array.isArray(type) ? type : type === undefined ? [] : [type];
  const [kind, ...others] = types.filter((one) => one !== 'null');
  const nullable = types.includes('null');
  const description = typeof property.description === 'string' ? { description: property.description } : {};
  const common = { name, ...description, nullable, needed: required && !nullable };
  const known = kind === undefined || ['string', 'boolean', 'array'].includes(String(kind));
  if (others.length > 0 || !known) throw unsupported(path, SUPPORTED);
  checkKeywords(rest, path);
  if (only !== undefined) return { ...common, kind: 'class', values: [only] };
  if (Array.isArray(values)) return { ...common, kind: 'class', values: values.filter((value) => value !== null) };
  if (kind === 'string') return { ...common, kind: 'text' };
  if (kind === 'boolean') return { ...common, kind: 'boolean' };
  if (kind !== 'array' || !isObject(items)) throw unsupported(path, SUPPORTED);
  const { type: itemType, enum: itemValues, ...itemRest } = items;
  if (itemType === 'object' || isObject(itemRest.properties)) {
    if (!structures) throw unsupported(path, 'a text, a list of texts, a choice or a boolean');
    return {
      ...common,
      kind: 'structures',
      fields: objectFields(items, path, false).map((field) => structureField(field, path)),
    };
  }
  checkKeywords(itemRest, path);
  if (Array.isArray(itemValues)) return { ...common, kind: 'classes', values: itemValues };
  if (itemType === 'string') return { ...common, kind: 'texts' };
  throw unsupported(path, SUPPORTED);
}

function structureField(field: ExtractField, path: string): StructureField {
  const { name, kind, nullable, needed } = field;
  if (kind === 'text' || kind === 'texts') return { name, kind, nullable, needed };
  if (kind !== 'class' && kind !== 'classes')
    throw unsupported(`${path}.${name}`, 'a text, a list of texts or a choice of texts');
  const choices = field.values.filter((value) => typeof value === 'string');
  if (choices.length < field.values.length) throw unsupported(`${path}.${name}`, 'a choice of texts');
  return { name, kind: kind === 'class' ? 'text' : 'texts', choices, nullable, needed };
}

const SUPPORTED = 'a text, a list of texts, a choice, a boolean or a list of flat objects';

function checkKeywords(keywords: JsonSchema, path: string): void {
  const keyword = Object.keys(keywords).find((one) => !ANNOTATIONS.has(one));
  if (keyword === undefined) return;
  const where = path === '' ? 'the schema' : path;
  throw new AssayError(
    'unsupported_schema',
    `This model cannot keep to ${keyword} of ${where}: it finds texts as they are. Remove the keyword, or load a generative model.`,
  );
}

function unsupported(path: string, allowed: string): AssayError {
  const where = path === '' ? 'the schema' : path;
  return new AssayError(
    'unsupported_schema',
    `This model cannot extract ${where}: it must be ${allowed}. Change it, or load a generative model.`,
  );
}
