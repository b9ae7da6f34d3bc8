import { type ConversionConfig, toJsonSchemaDefs } from '@valibot/to-json-schema';
import type * as v from 'valibot';

export type JsonSchemaObject = { [keyword: string]: unknown };

/**
 * Converts Valibot schemas, by name, to the JSON Schemas that the contract has under these names. A named schema inside
 * another becomes a `$ref`.
 */
export function jsonSchemas(schemas: Record<string, v.GenericSchema>): Record<string, JsonSchemaObject> {
  const names = new Map<unknown, string>(Object.entries(schemas).map(([name, schema]) => [schema, name]));
  return toJsonSchemaDefs(schemas, {
    target: 'draft-2020-12',
    // Describes what clients send: fields with defaults are optional, and transformed values have the type before the
    // transformation.
    typeMode: 'input',
    // JSON Schema has no keyword for rules across members; the descriptions state them.
    ignoreActions: ['rule', 'presence', 'late_rule'],
    overrideRef: ({ referenceId }) => refTo(referenceId),
    overrideAction: ({ valibotAction, jsonSchema }) =>
      valibotAction.type === 'max_code_points'
        ? // Only this action has this `type`, so the cast is safe.
          { ...jsonSchema, maxLength: (valibotAction as v.MaxCodePointsAction<string, number, undefined>).requirement }
        : undefined,
    overrideSchema: (context) => plain(context, names),
  }) as Record<string, JsonSchemaObject>;
}

/** Returns the `$ref` of a named schema in openapi.json. */
export function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}

type SchemaContext = Parameters<NonNullable<ConversionConfig['overrideSchema']>>[0];

/** Replaces parts of the generated JSON Schema that client generators do not understand. */
function plain(
  { valibotSchema, jsonSchema }: SchemaContext,
  names: Map<unknown, string>,
): SchemaContext['jsonSchema'] | undefined {
  switch (valibotSchema.type) {
    case 'literal': {
      const { const: only, ...rest } = jsonSchema;
      return { ...rest, type: Number.isInteger(only) ? 'integer' : (typeof only as 'string'), enum: [only!] };
    }
    case 'custom':
      // A custom check has no JSON Schema of its own; the metadata piped after it describes the value.
      return {};
    case 'record': {
      const { propertyNames: _, additionalProperties, ...rest } = jsonSchema;
      return { ...rest, additionalProperties: isEmpty(additionalProperties) ? true : additionalProperties! };
    }
    case 'object':
      return plainObject(jsonSchema);
    case 'nullable':
    case 'nullish':
      return orNull(jsonSchema);
    case 'variant':
      // Only a variant schema has this `type`. `discriminator` is a keyword of OpenAPI that the type of a JSON Schema
      // lacks.
      return { ...jsonSchema, discriminator: discriminator(valibotSchema as Variant, names) } as typeof jsonSchema;
    default:
      return undefined;
  }
}

/**
 * Returns an object schema without the fields that are always refused (`lib/schema/unsupported.ts`), and without an
 * empty `required`.
 */
function plainObject({
  properties = {},
  required = [],
  ...rest
}: SchemaContext['jsonSchema']): SchemaContext['jsonSchema'] {
  const offered = Object.entries(properties).filter(
    ([, property]) => !JSON.stringify(property).includes('"x-unsupported"'),
  );
  return { ...rest, properties: Object.fromEntries(offered), ...(required.length > 0 ? { required } : {}) };
}

function isEmpty(schema: unknown): boolean {
  return typeof schema === 'object' && schema !== null && Object.keys(schema).length === 0;
}

type Variant = v.VariantSchema<string, v.VariantOptions<string>, undefined>;

function discriminator({ key, options }: Variant, names: Map<unknown, string>) {
  const mapping = options.map((option) => {
    // The cast is safe, because every option of a variant is an object with a literal under the key.
    const literal = (option as unknown as { entries: Record<string, v.LiteralSchema<string, undefined>> }).entries[key]!
      .literal;
    const name = names.get(option);
    if (name === undefined) throw new Error(`The variant ${key}=${literal} needs a name in lib/openapi/components.ts.`);
    return [literal, refTo(name)];
  });
  return { propertyName: key, mapping: Object.fromEntries(mapping) };
}

/** Rewrites `anyOf: [X, null]` to X with null among its types. Returns undefined if that is not possible. */
function orNull(jsonSchema: SchemaContext['jsonSchema']): SchemaContext['jsonSchema'] | undefined {
  const { anyOf, ...rest } = jsonSchema;
  const inner = anyOf?.[0];
  if (typeof inner !== 'object') return undefined;
  if (inner.anyOf) return { ...inner, ...rest, anyOf: [...inner.anyOf, { type: 'null' }] };
  if (inner.type === 'null') return inner;
  if (typeof inner.type !== 'string') return undefined;
  const choices = inner.enum ? { enum: [...inner.enum, null] } : {};
  return { ...inner, ...rest, ...choices, type: [inner.type, 'null'] };
}
