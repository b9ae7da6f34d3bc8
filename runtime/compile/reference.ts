import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { incomplete } from './manifest.ts';

/** File name of the reference logits in a compiled model's folder. */
export const REFERENCE_FILE = 'reference.json';

const Index = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1 << 24));
const Row = v.pipe(v.array(v.pipe(v.number(), v.finite())), v.minLength(1), v.maxLength(1024));

/**
 * Logits of a short prompt, computed in 32-bit floats from the published weights. The logits of every precision are
 * compared with them.
 */
export const Reference = v.strictObject({
  tokens: v.pipe(v.array(Index), v.minLength(1), v.maxLength(64)),
  /** Indices in `tokens` after which the logits were taken, ascending. */
  positions: v.pipe(v.array(Index), v.minLength(1), v.maxLength(64)),
  /**
   * Step between the vocabulary entries of a row: `logits` has a row for each position, with the logits of the tokens
   * 0, `stride`, 2 · `stride` and so on.
   */
  stride: v.pipe(Index, v.minValue(1)),
  logits: v.pipe(v.array(Row), v.minLength(1), v.maxLength(64)),
});
export type Reference = v.InferOutput<typeof Reference>;

/** Reads the reference of a compiled model's folder. Throws `engine_failed` if there is no valid one. */
export function readReference(folder: string): Reference {
  try {
    return v.parse(Reference, JSON.parse(readFileSync(join(folder, REFERENCE_FILE), 'utf8')));
  } catch (cause) {
    throw incomplete(cause);
  }
}
