import { StructuredOutputProcessor } from '@huggingface/transformers-structured-output';
import { at } from '../../lib/at.ts';
import type { JsonSchema } from '../../lib/contract/answer-shape.ts';
import type { Constraint, Vocabulary } from '../../lib/grammar/constraint.ts';

/** Generates an answer with the choices of `choose` until it is complete or has `limit` tokens. Returns its tokens. */
export function record(constraint: Constraint, choose: (constraint: Constraint) => number, limit: number): number[] {
  const tokens: number[] = [];
  while (tokens.length < limit) {
    tokens.push(...constraint.takeForced());
    if (constraint.complete) break;
    const token = choose(constraint);
    constraint.accept(token);
    tokens.push(token);
  }
  return tokens;
}

/** Replays a recorded answer and computes a mask before each choice, as an engine does. Returns the milliseconds. */
export function replay(constraint: Constraint, tokens: readonly number[], mask: Uint32Array): number {
  const began = performance.now();
  for (let i = constraint.takeForced().length; i < tokens.length; i += 1 + constraint.takeForced().length) {
    if (constraint.complete) break;
    constraint.mask(mask);
    constraint.accept(at(tokens, i));
  }
  return performance.now() - began;
}

/** Returns the vocabulary as a tokenizer of the peer. Use one for all schemas: the peer builds its tables only once. */
export function peerTokenizer(vocabulary: Vocabulary): object {
  const [end] = vocabulary.end;
  return {
    tokens: Array.from({ length: vocabulary.size }, (_, token) => vocabulary.bytes(token) ?? new Uint8Array([0])),
    eos_token_id: end,
  };
}

/**
 * Replays a recorded answer with the peer, which computes a mask before every token. Returns the milliseconds,
 * including the time to set 150,000 logits.
 */
export function replayWithPeer(tokenizer: object, schema: JsonSchema, tokens: readonly number[], size: number): number {
  const processor = new StructuredOutputProcessor(tokenizer, { type: 'json_schema', json_schema: schema as never });
  const data = new Float32Array(size);
  const input: bigint[] = [];
  const began = performance.now();
  for (const token of tokens) {
    data.fill(0);
    processor._call([input] as never, { dims: [1, size], data } as never);
    if (data[token] === Number.NEGATIVE_INFINITY) throw new Error('the peer does not allow our answer');
    input.push(BigInt(token));
  }
  return performance.now() - began;
}
