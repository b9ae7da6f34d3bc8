import { StructuredOutputProcessor } from '@huggingface/transformers-structured-output';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json, JsonSchema } from '../../lib/contract/answer-shape.ts';
import { Automaton, type State } from '../../lib/grammar/automaton/automaton.ts';
import { compileSchema } from '../../lib/grammar/resolve/compile.ts';
import { randomFrom } from './random-model.ts';

/*
 * The same schemas and texts, given to our automaton and to `@huggingface/transformers-structured-output`. They must
 * agree on the keywords that both support, except for what we exclude on purpose: white space, needless escapes,
 * exponents, other orders of members.
 */

const END = 256;
const tokens = [...Array.from({ length: 256 }, (_, byte) => [byte]), [1]];

/** Tells whether the peer allows these bytes and then the end. */
function peerAccepts(schema: JsonSchema, bytes: Uint8Array): boolean {
  const processor = new StructuredOutputProcessor(
    { tokens, eos_token_id: END },
    { type: 'json_schema', json_schema: schema as never },
  );
  const input: bigint[] = [];
  for (const token of [...bytes, END]) {
    const data = new Float32Array(END + 1);
    try {
      processor._call([input] as never, { dims: [1, END + 1], data } as never);
    } catch {
      return false;
    }
    if (data[token] === Number.NEGATIVE_INFINITY) return false;
    input.push(BigInt(token));
  }
  return true;
}

function weAccept(automaton: Automaton, bytes: Uint8Array): boolean {
  let state: State | null = automaton.start;
  for (const byte of bytes) state = state?.next(byte) ?? null;
  return state?.complete ?? false;
}

/** Returns a text of the automaton, byte by byte at random, mostly to the end. */
function randomText(automaton: Automaton, random: () => number): Uint8Array {
  const bytes: number[] = [];
  for (let state = automaton.start; !state.complete && bytes.length < 400; ) {
    const possible = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => state.next(byte) !== null);
    const closing = possible.filter((byte) => '"}],'.includes(String.fromCharCode(byte)));
    const from = closing.length > 0 && random() < 0.5 ? closing : possible;
    const byte = from[Math.floor(random() * from.length)]!;
    bytes.push(byte);
    state = state.next(byte)!;
  }
  return Uint8Array.from(bytes);
}

/** Returns a text with one character changed, removed or inserted. */
function bent(text: string, random: () => number): string {
  const chars = [...text];
  const at = Math.floor(random() * chars.length);
  const extra = [...'"{}[],:0123456789.-abtn é中\\'][Math.floor(random() * 29)] ?? '1';
  chars.splice(at, random() < 0.7 ? 1 : 0, ...(random() < 0.8 ? [extra] : []));
  return chars.join('');
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Tells whether we would write a JSON text in the same way, if its value were allowed: no space, no needless escape,
 * digit or exponent.
 */
function isOurForm(text: string): boolean {
  return !/-0[,\]}]/.test(text) && JSON.stringify(JSON.parse(text)) === text;
}

const bound = fc.oneof(fc.integer({ min: -30, max: 120 }), fc.constantFrom(0.5, -0.25, 1.05, 99.99));
const literal = fc.constantFrom<Json>('a', 'ab', 'é中', 'x"y', 1, 12, -3, 0.5, null, true, false, [], [1, 'a'], {
  k: 'v',
});
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const defined = (record: object): JsonSchema =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));

const { node } = fc.letrec<{ node: JsonSchema }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    fc
      .record({
        type: fc.constantFrom<Json>('string', ['string', 'null']),
        minLength: optional(fc.nat(3)),
        maxLength: optional(fc.integer({ min: 3, max: 8 })),
      })
      .map(defined),
    fc
      .record({
        type: fc.constantFrom<Json>('number', 'integer', ['integer', 'null']),
        minimum: optional(bound),
        maximum: optional(bound),
        exclusiveMinimum: optional(bound),
        multipleOf: optional(fc.constantFrom(1, 3, 0.5, 0.25, 0.1)),
      })
      .map(defined),
    fc.record({ enum: fc.uniqueArray(literal, { minLength: 1, maxLength: 4 }) }),
    fc.constantFrom<JsonSchema>({ type: 'boolean' }, { type: 'null' }, { const: 'fixed' }),
    fc
      .record({
        type: fc.constant('array'),
        items: tie('node'),
        minItems: optional(fc.nat(2)),
        maxItems: fc.integer({ min: 2, max: 4 }),
      })
      .map(defined),
    fc.record({ anyOf: fc.array(tie('node'), { minLength: 1, maxLength: 3 }) }),
    objectOf(tie('node')),
  ),
}));

function objectOf(property: fc.Arbitrary<JsonSchema>): fc.Arbitrary<JsonSchema> {
  return fc
    .record({ a: property, b: optional(property), ab: optional(property), 'é"': optional(property) })
    .chain((properties) => {
      const all = defined(properties);
      return fc
        .subarray(Object.keys(all))
        .map((required) => ({ type: 'object', properties: all, required, additionalProperties: false }) as JsonSchema);
    });
}

test('agrees with transformers-structured-output on shared keywords', () => {
  const numRuns = Math.ceil(Number(process.env.ASSAY_PROPERTY_RUNS ?? 120) / 2);
  let texts = 0;
  let rejected = 0;
  fc.assert(
    fc.property(objectOf(node), fc.nat(), (schema, seed) => {
      let automaton: Automaton;
      try {
        automaton = new Automaton(compileSchema(schema, { path: 'schema' }));
      } catch {
        return;
      }
      const random = randomFrom(seed);
      for (let i = 0; i < 4; i++) {
        const bytes = randomText(automaton, random);
        if (!weAccept(automaton, bytes)) continue; // not ended in time
        const text = new TextDecoder().decode(bytes);
        expect([text, peerAccepts(schema, bytes)]).toEqual([text, true]);
        texts++;
        for (let j = 0; j < 3; j++) {
          const other = bent(text, random);
          const encoded = new TextEncoder().encode(other);
          const ours = weAccept(automaton, encoded);
          // Texts that are not JSON prove nothing; the peer allows a comma before the end of an object (4.3.0).
          const isJson = parses(other);
          if (!ours && isJson && !isOurForm(other)) continue;
          rejected += ours ? 0 : 1;
          expect([other, ours]).toEqual([other, isJson && peerAccepts(schema, encoded)]);
        }
      }
    }),
    { numRuns, seed: 3 },
  );
  expect(texts).toBeGreaterThan(numRuns);
  expect(rejected).toBeGreaterThan(numRuns);
}, 3_600_000);
