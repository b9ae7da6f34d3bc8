import type { AnswerShape, JsonSchema } from '../../lib/contract/answer-shape.ts';

const object = (properties: JsonSchema, more: JsonSchema = {}): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  ...more,
});
const fields = (count: number, field: (i: number) => JsonSchema): JsonSchema =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`field_${i}`, field(i)]));
const schema = (json: JsonSchema): AnswerShape => ({ kind: 'schema', schema: json });

/** Lists answer shapes, from common ones to the largest that are accepted, with their names in tables. */
export const SHAPES: readonly (readonly [string, AnswerShape])[] = [
  ['4 keys', { kind: 'keys', keys: ['vendor', 'date', 'total', 'currency'] }],
  ['128 keys', { kind: 'keys', keys: Array.from({ length: 128 }, (_, i) => `key ${i}`) }],
  ['open object', { kind: 'open' }],
  ['any JSON object', { kind: 'any' }],
  [
    'invoice',
    schema(
      object({
        vendor: { type: ['string', 'null'] },
        total: { type: 'number', minimum: 0, multipleOf: 0.01 },
        currency: { enum: ['EUR', 'USD', 'GBP', null] },
        lines: { type: 'array', items: object({ sku: { type: 'string' }, qty: { type: 'integer' } }), maxItems: 50 },
      }),
    ),
  ],
  ['bounded strings', schema(object(fields(8, (i) => ({ type: 'string', minLength: i, maxLength: 20 + i }))))],
  [
    'formats',
    schema(
      object({
        day: { type: 'string', format: 'date' },
        at: { type: 'string', format: 'date-time' },
        mail: { type: 'string', format: 'email' },
        link: { type: 'string', format: 'uri' },
        id: { type: 'string', format: 'uuid' },
      }),
    ),
  ],
  [
    'patterns',
    schema(object(fields(6, (i) => ({ type: 'string', pattern: `^[A-Z]{${i + 1}}-\\d{4}( [a-z]+){0,3}$` })))),
  ],
  [
    'recursive tree',
    schema({
      $ref: '#/$defs/node',
      $defs: {
        node: object({ name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } }),
      },
    }),
  ],
  [
    '40 tagged variants',
    schema(
      object({
        event: {
          oneOf: Array.from({ length: 40 }, (_, i) =>
            object({ kind: { const: `kind_${i}` }, note: { type: 'string' } }),
          ),
        },
      }),
    ),
  ],
  ['enum of 9,000', schema(object({ city: { enum: Array.from({ length: 9_000 }, (_, i) => `City number ${i}`) } }))],
  ['1,000 optional', schema({ type: 'object', properties: fields(1_000, () => ({ type: ['string', 'null'] })) })],
  ['100 long patterns', schema(object(fields(100, (i) => ({ type: 'string', pattern: `^[a-z]{3}-\\d{${i + 1}}$` }))))],
];

const line = object({ sku: { type: 'string' }, qty: { type: 'integer' } }, { additionalProperties: false });

/** Lists schemas whose keywords the peer also supports. */
export const PEER_SHAPES: readonly (readonly [string, JsonSchema])[] = [
  [
    '4 strings',
    object(
      fields(4, () => ({ type: 'string', maxLength: 60 })),
      { additionalProperties: false },
    ),
  ],
  ['list of lines', object({ lines: { type: 'array', items: line, maxItems: 20 } }, { additionalProperties: false })],
  [
    'bounded numbers',
    object(
      fields(6, (i) => ({ type: 'number', minimum: i, maximum: 1000 })),
      { additionalProperties: false },
    ),
  ],
  [
    'nullable strings',
    object(
      fields(16, () => ({ type: ['string', 'null'] })),
      { additionalProperties: false },
    ),
  ],
];
