import type { Json, JsonSchema } from '../../lib/contract/answer-shape.ts';

const range = (count: number) => Array.from({ length: count }, (_, i) => i);
const object = (properties: JsonSchema): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});
const fields = (count: number, field: (i: number) => Json): JsonSchema =>
  object(Object.fromEntries(range(count).map((i) => [`p${i}`, field(i)])));
const value = (schema: Json): JsonSchema => object({ v: schema });
const hanzi = (count: number) => range(count).map((i) => String.fromCodePoint(0x4e00 + 2 * i));
const doubled = (last: JsonSchema) =>
  Object.fromEntries(
    range(40).map((i) => {
      const next = { $ref: `#/$defs/d${i + 1}` };
      return [`d${i}`, i === 39 ? last : { allOf: [next, next] }];
    }),
  );

/** Schemas that would be expensive without bounds, and whether they are accepted. */
export const HOSTILE: readonly (readonly [string, JsonSchema, 'accepted' | 'refused'])[] = [
  ['a pattern of 2^30 states', value({ pattern: '(a|b)*a(a|b){30}' }), 'refused'],
  ['a pattern repeated a million times', value({ pattern: '((a{100}){100}){100}' }), 'refused'],
  ['100 patterns of 100 states', fields(100, (i) => ({ pattern: `^[a-z]{3}-\\d{${i + 50}}$` })), 'accepted'],
  ['1,000 patterns', fields(1_000, (i) => ({ pattern: `^[a-z]{3}-\\d{${i + 1}}$` })), 'refused'],
  ['patterns and formats together', fields(200, (i) => ({ format: 'uri', pattern: `x${i}$` })), 'refused'],
  ['maxLength of a billion', value({ type: 'string', maxLength: 1e9 }), 'accepted'],
  ['minLength of a billion', value({ type: 'string', minLength: 1e9 }), 'refused'],
  ['minLength of 60,000 and a pattern', value({ pattern: '^[a-z0-9.-]+$', minLength: 60_000 }), 'accepted'],
  ['minItems of a billion', value({ type: 'array', minItems: 1e9, items: { const: 1 } }), 'refused'],
  ['maxItems of a billion', value({ type: 'array', maxItems: 1e9, items: { const: 1 } }), 'accepted'],
  [
    'minItems inside minItems',
    value({ type: 'array', minItems: 500, items: { type: 'array', minItems: 500, items: true } }),
    'refused',
  ],
  ['9,900 enum values', value({ enum: range(9_900).map((i) => `value ${i}`) }), 'accepted'],
  [
    'enum values against an expensive pattern',
    value({ pattern: '(a|b)*a(a|b){8}', enum: range(9_000).map((i) => `${'ab'.repeat(50)}${i}`) }),
    'refused',
  ],
  [
    '2^20 alternatives',
    value({ allOf: range(20).map((i) => ({ anyOf: [{ minLength: i }, { maxLength: 100 + i }] })) }),
    'refused',
  ],
  [
    '400 branches of oneOf',
    value({ oneOf: range(400).map((i) => object({ kind: { const: i }, text: { type: 'string' } })) }),
    'refused',
  ],
  [
    '2^40 ways to the same schema',
    { ...value({ $ref: '#/$defs/d0' }), $defs: doubled({ type: 'string' }) },
    'accepted',
  ],
  [
    '2^40 ways to check one value',
    { ...value({ enum: ['a'], $ref: '#/$defs/d0' }), $defs: doubled({ type: 'string' }) },
    'refused',
  ],
  [
    'a chain of 4,000 references',
    {
      ...value({ $ref: '#/$defs/d0' }),
      $defs: Object.fromEntries(
        range(4_000).map((i) => [`d${i}`, i === 3_999 ? { type: 'string' } : { $ref: `#/$defs/d${i + 1}` }]),
      ),
    },
    'refused',
  ],
  [
    'a value at the end of 4,000 references',
    {
      ...value({ enum: ['a'], $ref: '#/$defs/d0' }),
      $defs: Object.fromEntries(
        range(4_000).map((i) => [`d${i}`, i === 3_999 ? { type: 'string' } : { $ref: `#/$defs/d${i + 1}` }]),
      ),
    },
    'refused',
  ],
  [
    '200 patterns in one place',
    value({ anyOf: range(200).map((i) => ({ type: 'string', pattern: `^.*x${i}$` })) }),
    'accepted',
  ],
  ['oneOf of 9,000', value({ oneOf: range(9_000).map(() => true) }), 'refused'],
  [
    '190 places with the same oneOf of 256',
    {
      ...fields(190, () => ({ allOf: [{ $ref: '#/$defs/b' }], title: 'x' })),
      $defs: { b: { oneOf: range(256).map((i) => ({ const: i })) } },
    },
    'refused',
  ],
  [
    '100 tagged branches of oneOf',
    value({ oneOf: range(100).map((i) => object({ kind: { const: i }, note: {} })) }),
    'accepted',
  ],
  [
    '255 multiples less all whole numbers',
    value({
      oneOf: [...range(255).map((i) => ({ type: 'integer', multipleOf: 100_003 + 2 * i })), { type: 'integer' }],
    }),
    'refused',
  ],
  [
    '15 ranges less all numbers',
    value({
      oneOf: [
        ...range(15).map((i) => ({ type: 'integer', minimum: i * 1_000, maximum: i * 1_000 + 1_500 })),
        { type: 'number' },
      ],
    }),
    'accepted',
  ],
  ['a whole number less 900 values', value({ oneOf: [{ type: 'integer' }, { enum: range(900) }] }), 'accepted'],
  ['500 multiples at once', value({ allOf: range(500).map((i) => ({ multipleOf: 2 ** 52 + 2 * i + 1 })) }), 'refused'],
  ['16 multiples at once', value({ allOf: range(16).map((i) => ({ multipleOf: 2 ** 40 + 2 * i + 1 })) }), 'accepted'],
  [
    '1,500 numbers of 300 digits',
    fields(1_500, (i) => ({ type: 'number', minimum: -1.2345678901e-290 * (i + 1), multipleOf: 1.234567e-300 })),
    'accepted',
  ],
  ['a value of a million characters', value({ enum: ['a', 'x'.repeat(1_000_000)] }), 'refused'],
  ['9,000 values of 100 characters', value({ enum: range(9_000).map((i) => `${i}`.padStart(100, 'x')) }), 'refused'],
  [
    '8,000 values of 25 characters, checked',
    value({ enum: range(8_000).map((i) => `${i}`.padStart(25, 'x')), minLength: 3, pattern: 'x' }),
    'accepted',
  ],
  [
    'a name of 20,000 characters around 3,000 others',
    object({ ['n'.repeat(20_000)]: fields(3_000, () => ({ type: 'string' })) }),
    'accepted',
  ],
  ['a shorthand of 300,000 fields', Object.fromEntries(range(300_000).map((i) => [`k${i}`, 'string'])), 'refused'],
  ['3,300 fields', fields(3_300, () => ({ type: 'number' })), 'accepted'],
  ['10,000 constant values', value({ const: range(9_000).map(() => ({})) }), 'accepted'],
  [
    'objects of 110 members, 29 deep',
    {
      ...value({ $ref: '#/$defs/d0' }),
      $defs: Object.fromEntries(
        range(29).map((i) => [
          `d${i}`,
          object({
            ...Object.fromEntries(range(110).map((j) => [`m${j}`, { type: 'boolean' }])),
            next: i === 28 ? { type: 'null' } : { $ref: `#/$defs/d${i + 1}` },
          }),
        ]),
      ),
    },
    'accepted',
  ],
  [
    'a million members in all',
    {
      ...fields(70, () => ({ allOf: [{ $ref: '#/$defs/b' }], title: 'x' })),
      $defs: { b: fields(2_000, () => ({ type: 'boolean' })) },
    },
    'refused',
  ],
  [
    '12 sets of Unicode characters',
    fields(12, (i) => ({
      pattern: `^\\p{${['L', 'N', 'P', 'S', 'Lu', 'Ll', 'Z', 'M', 'Sc', 'Lo', 'Nd', 'Po'][i]}}+$`,
    })),
    'refused',
  ],
  ['a pattern of 300 letters', value({ pattern: `^(${hanzi(300).join('|')}){5}$` }), 'accepted'],
  [
    '150 negated letters',
    value({
      pattern: hanzi(150)
        .map((letter) => `[^${letter}]`)
        .join(''),
    }),
    'refused',
  ],
  ['300 optional letters', value({ pattern: '^(a?){300}$' }), 'accepted'],
  ['a pattern that backtracks without end', value({ pattern: '^((a|aa)+)+$' }), 'accepted'],
  ['a string less 1,700 texts', value({ oneOf: [{ type: 'string' }, { enum: range(1_700).map(String) }] }), 'accepted'],
  ['uniqueItems', value({ type: 'array', uniqueItems: true }), 'refused'],
  ['29 levels', range(29).reduce((a: Json) => object({ a }), { type: 'string' } as Json) as JsonSchema, 'accepted'],
  [
    'lists in lists without end',
    { ...value({ $ref: '#/$defs/a' }), $defs: { a: { type: 'array', items: { $ref: '#/$defs/a' }, minItems: 1 } } },
    'refused',
  ],
  ['tiny steps', value({ type: 'number', multipleOf: 1e-300 }), 'accepted'],
  [
    'a step of a thousand primes',
    value({ allOf: range(1_000).map((i) => ({ multipleOf: (2 * i + 1) * 1e-280 })) }),
    'refused',
  ],
  ['bounds beyond exact numbers', value({ type: 'integer', minimum: 9_007_199_254_740_992 }), 'refused'],
  ['5,000 different list places', value({ prefixItems: range(4_500).map((i) => ({ const: i })) }), 'refused'],
];
