import fc from 'fast-check';

type Schema = { [keyword: string]: unknown } | boolean;

const names = ['a', 'b', 'ab', 'name', 'é', 'x"y', '10', '', 'value'];
const name = fc.constantFrom(...names);
const scalar = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    1,
    12,
    -3,
    0.5,
    1e21,
    '',
    'a',
    'ab',
    'a"b',
    'é中😀',
    '10',
    '2024-02-29',
    '\u0001',
  ),
  fc.string({ maxLength: 4, unit: 'grapheme' }),
  fc.integer({ min: -20, max: 20 }),
);
const plainValue = fc.oneof(
  { weight: 5, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 2 }) },
  { weight: 1, arbitrary: fc.dictionary(name, scalar, { maxKeys: 2 }) },
);

const patterns = [
  '^a',
  'b$',
  '^[ab]{2,4}$',
  '^\\d{3}-\\d{2}$',
  'x',
  '^(red|green|blue)$',
  '^\\p{Lu}\\p{Ll}*$',
  '^.{3,}$',
  '[^a]',
  '^é中?$',
  '\\n',
  '"',
];
const formats = ['date', 'time', 'date-time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid'];
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });

const stringSchema = fc
  .record({
    type: fc.constantFrom<unknown>('string', ['string', 'null'], ['integer', 'string']),
    minLength: maybe(fc.nat(6)),
    maxLength: maybe(fc.integer({ min: 3, max: 30 })),
    pattern: fc.option(fc.constantFrom(...patterns), { nil: undefined, freq: 1 }),
  })
  .map(defined);
const formatSchema = fc
  .record({
    type: fc.constant('string'),
    format: fc.constantFrom(...formats),
    maxLength: fc.constantFrom(undefined, undefined, 40),
  })
  .map(defined);
const bound = fc.oneof(
  fc.integer({ min: -200, max: 200 }),
  fc.constantFrom(0.5, -0.25, 1.05, 0.001, 3.14, 1e6, -1e15, 99.99),
);
const numberSchema = fc
  .record({
    type: fc.constantFrom<unknown>('number', 'integer', ['number', 'null'], undefined),
    minimum: maybe(bound),
    maximum: maybe(bound),
    exclusiveMinimum: fc.option(bound, { nil: undefined, freq: 1 }),
    exclusiveMaximum: fc.option(bound, { nil: undefined, freq: 1 }),
    multipleOf: fc.option(fc.constantFrom(1, 2, 3, 7, 10, 0.5, 0.25, 0.1, 0.01, 1e-7, 2.5), {
      nil: undefined,
      freq: 1,
    }),
  })
  .map(defined);

/** Rules for the names and the number of members, as generators write records. */
const rarely = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 1 });
const namePatterns = ['^[ab]+$', '^x', '^[a-c]$', 'e', '^.{2}$', '^(?!a)'];
const memberRules = (value: fc.Arbitrary<Schema>) => ({
  minProperties: rarely(fc.nat(3)),
  maxProperties: rarely(fc.integer({ min: 1, max: 6 })),
  patternProperties: rarely(fc.dictionary(fc.constantFrom(...namePatterns), value, { minKeys: 1, maxKeys: 2 })),
  propertyNames: rarely(
    fc.oneof(
      fc.constantFrom<Schema>({ type: 'string' }, true, { maxLength: 2 }, { minLength: 2, pattern: '^[a-z]+$' }),
      fc.constantFrom(...namePatterns).map((pattern) => ({ type: 'string', pattern })),
      fc.uniqueArray(name, { minLength: 1, maxLength: 4 }).map((values) => ({ enum: values })),
    ),
  ),
  unevaluatedProperties: rarely(fc.constantFrom<Schema>(false, { type: 'integer' })),
});

/** A list whose items must differ. Its items are few, so that the list often uses them up. */
const uniqueList: fc.Arbitrary<Schema> = fc
  .record({
    type: fc.constant('array'),
    items: fc.oneof(
      fc.record({ enum: fc.array(scalar, { minLength: 1, maxLength: 5 }) }),
      fc.constantFrom<Schema>(
        { type: 'boolean' },
        { type: 'string' },
        { type: ['string', 'null'], maxLength: 1, pattern: '^[a-c]' },
        { pattern: '^(a|bc|bd)$' },
        { anyOf: [{ enum: ['a', 1, null] }, { pattern: '^[ab]{1,2}$' }] },
        { type: 'integer', minimum: 9, maximum: 12 },
        { type: 'number', multipleOf: 0.5, minimum: 0 },
      ),
    ),
    uniqueItems: fc.constant(true),
    minItems: maybe(fc.nat(3)),
    maxItems: maybe(fc.integer({ min: 2, max: 5 })),
  })
  .map(defined);

const { schema } = fc.letrec<{ schema: Schema; object: Schema; array: Schema; combined: Schema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 4, arbitrary: stringSchema },
    { weight: 3, arbitrary: numberSchema },
    { weight: 1, arbitrary: formatSchema },
    { weight: 2, arbitrary: fc.record({ enum: fc.array(plainValue, { minLength: 1, maxLength: 5 }) }) },
    { weight: 1, arbitrary: fc.record({ const: plainValue }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Schema>(
        true,
        {},
        { type: 'null' },
        { type: 'boolean' },
        { type: ['boolean', 'integer'] },
      ),
    },
    { weight: 1, arbitrary: fc.constantFrom<Schema>({ $ref: '#' }, { $ref: '#/$defs/one' }, { $ref: '#/$defs/two' }) },
    { weight: 4, arbitrary: tie('object') },
    { weight: 2, arbitrary: tie('array') },
    { weight: 3, arbitrary: tie('combined') },
  ),
  object: fc
    .record({
      type: fc.constantFrom<unknown>('object', 'object', ['object', 'null']),
      properties: fc.dictionary(name, tie('schema'), { maxKeys: 4 }),
      required: maybe(fc.uniqueArray(name, { maxLength: 3 })),
      additionalProperties: fc.option(fc.oneof(fc.boolean(), tie('schema')), { nil: undefined, freq: 2 }),
      title: maybe(fc.constant('A title')),
      ...memberRules(tie('schema')),
    })
    .map(defined),
  array: fc
    .record({
      type: fc.constantFrom<unknown>('array', ['array', 'null']),
      items: maybe(tie('schema')),
      prefixItems: fc.option(fc.array(tie('schema'), { minLength: 1, maxLength: 3 }), { nil: undefined, freq: 1 }),
      minItems: maybe(fc.nat(3)),
      maxItems: maybe(fc.integer({ min: 1, max: 5 })),
    })
    .map(defined)
    .chain((array) =>
      fc.option(fc.constant(array), { nil: null, freq: 3 }).chain((kept) => (kept ? fc.constant(kept) : uniqueList)),
    ),
  combined: fc.oneof(
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    fc
      .tuple(stringSchema, numberSchema, fc.array(scalar, { minLength: 1, maxLength: 3 }))
      .map(([text, number, values]) => ({
        oneOf: [text, number, ...values.map((value) => ({ const: value }))],
      })),
    fc.record({ oneOf: fc.array(fc.oneof(stringSchema, numberSchema), { minLength: 2, maxLength: 3 }) }),
    fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc
      .tuple(tie('object'), fc.array(tie('object'), { minLength: 1, maxLength: 2 }))
      .map(([base, anyOf]) => ({ ...(base as object), anyOf })),
    fc.tuple(fc.array(scalar, { minLength: 2, maxLength: 3 }), tie('object')).map(([kinds, base]) => ({
      oneOf: kinds.map((kind) => tagged(base, kind)),
    })),
  ),
}));

/** A branch that its `kind` distinguishes from others. */
function tagged(base: Schema, kind: unknown): Schema {
  const { properties = {}, ...rest } = base as { properties?: object };
  return { ...rest, type: 'object', properties: { kind: { const: kind }, ...properties }, required: ['kind'] };
}

/** Generates random schemas of objects over all supported keywords, with references and recursion. */
export const objectSchema: fc.Arbitrary<{ [keyword: string]: unknown }> = fc
  .record({
    properties: fc.dictionary(name, schema, { minKeys: 1, maxKeys: 5 }),
    required: maybe(fc.uniqueArray(name, { maxLength: 4 })),
    additionalProperties: fc.option(fc.oneof(fc.boolean(), schema), { nil: undefined, freq: 2 }),
    $defs: fc.record({ one: schema, two: schema }),
  })
  // Through JSON, as schemas arrive.
  .map((root) => JSON.parse(JSON.stringify({ type: 'object', ...defined(root) })));

function defined<T extends object>(record: T): { [keyword: string]: unknown } {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
