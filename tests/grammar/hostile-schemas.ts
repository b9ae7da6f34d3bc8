import type { Json, JsonSchema } from '../../lib/answer-shape.ts';

const range = (count: number) => Array.from({ length: count }, (_, i) => i);
const object = (properties: JsonSchema): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});
const fields = (count: number, field: (i: number) => Json): JsonSchema =>
  object(Object.fromEntries(range(count).map((i) => [`p${i}`, field(i)])));
const value = (schema: Json): JsonSchema => object({ v: schema });
const doubled = (last: JsonSchema) =>
  Object.fromEntries(
    range(40).map((i) => {
      const next = { $ref: `#/$defs/d${i + 1}` };
      return [`d${i}`, i === 39 ? last : { allOf: [next, next] }];
    }),
  );

/** Schemas that would be expensive if anything were left unbounded, and whether they are accepted. */
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
  ['tiny steps', value({ type: 'number', multipleOf: 1e-300 }), 'accepted'],
  [
    'a step of a thousand primes',
    value({ allOf: range(1_000).map((i) => ({ multipleOf: (2 * i + 1) * 1e-280 })) }),
    'refused',
  ],
  ['bounds beyond exact numbers', value({ type: 'integer', minimum: 9_007_199_254_740_992 }), 'refused'],
  ['5,000 different list places', value({ prefixItems: range(4_500).map((i) => ({ const: i })) }), 'refused'],
];
