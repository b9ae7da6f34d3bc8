import { at } from '../../lib/at.ts';
import type { FieldProbability } from '../../lib/backend.ts';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import { leavesOf } from '../../lib/json/leaves.ts';
import type { ScoredChoice } from '../engine/job.ts';

const encoder = new TextEncoder();

/**
 * Returns the probability of each leaf value of an answer: the product of the probabilities of the tokens that the
 * model chose to write it. A token that writes parts of several values counts for the first one; a token that writes
 * only structure (a name, the end of a list) counts for none. Values that the budget cut, or that were not reached, are
 * omitted.
 *
 * @param constraint constraint that wrote the answer
 * @param choices tokens that the model chose under it, in order
 */
export function fieldProbabilities(constraint: Constraint, choices: readonly ScoredChoice[]): FieldProbability[] {
  const json = constraint.closed();
  // The bytes of `json` after the common prefix only close an answer that was cut.
  const settled = sharedLength(encoder.encode(json), encoder.encode(constraint.text()));
  const fields: FieldProbability[] = [];
  let next = 0;
  let bytes = { text: 0, count: 0 };
  const byteAt = (text: number): number => {
    bytes = { text, count: bytes.count + encoder.encode(json.slice(bytes.text, text)).length };
    return bytes.count;
  };
  for (const { path, start, end } of leavesOf(json)) {
    const [from, to] = [byteAt(start), byteAt(end)];
    let logprob = 0;
    for (; next < choices.length && at(choices, next).start < to; next++) {
      const choice = at(choices, next);
      if (choice.end > from) logprob += choice.logprob;
    }
    if (to <= settled) fields.push({ path, probability: Math.exp(logprob) });
  }
  return fields;
}

/** Returns the length in bytes of the common prefix of two texts. */
function sharedLength(one: Uint8Array, other: Uint8Array): number {
  const length = Math.min(one.length, other.length);
  for (let i = 0; i < length; i++) if (one[i] !== other[i]) return i;
  return length;
}
