import { AssayError } from '../../lib/errors.ts';
import type { Forward } from './forward.ts';
import { type KvShape, Sequence } from './sequence.ts';

/**
 * As a share of the logits' spread. Measured: a millionth with weights in 8 and 32 bits; 0.10 with SmolLM2-135M in 4 bits, by how many tokens
 * stand beside and not by which; a branch that sees the other one, or less of the prefix, 0.37 to 1.1.
 */
const TOLERANCE = 0.2;

/**
 * Runs a branch beside another and by itself, and compares. Devices differ in which inputs of an operator they heed, and one that
 * ignores the mask would mix the answers of a request in silence. Throws `engine_failed`.
 */
export async function checkPacking(forward: Forward, layers: KvShape['layers']): Promise<void> {
  const [prefix, other, branch] = [0, 8, 12].map((from, i) => tokens(forward.vocabSize, from, [8, 4, 4][i]!)) as [
    number[],
    number[],
    number[],
  ];
  const inCompany = await logitsBehind(forward, layers, prefix, [other, branch]);
  const alone = await logitsBehind(forward, layers, prefix, [branch]);
  const mean = alone.reduce((sum, logit) => sum + logit, 0) / alone.length;
  const spread = alone.reduce((sum, logit) => sum + Math.abs(logit - mean), 0);
  const difference = alone.reduce((sum, logit, token) => sum + Math.abs(logit - inCompany[token]!), 0);
  // written so that NaN fails too
  if (difference <= TOLERANCE * spread) return;
  throw new AssayError(
    'engine_failed',
    'This device mixes up branches that run side by side; use another with --device.',
  );
}

/** The logits behind the last branch. */
async function logitsBehind(
  forward: Forward,
  layers: KvShape['layers'],
  prefix: readonly number[],
  branches: readonly (readonly number[])[],
): Promise<Float32Array> {
  const sequence = new Sequence({ layers }, prefix.length + branches.flat().length);
  for (const token of prefix) sequence.append(token, sequence.length - 1);
  await forward.run(sequence, 0, []);
  const start = sequence.length;
  for (const branch of branches) {
    let parent = start - 1;
    for (const token of branch) parent = sequence.append(token, parent);
  }
  return (await forward.run(sequence, start, [sequence.length - 1])).slice(0, forward.vocabSize);
}

/** Tokens spread over the vocabulary. */
function tokens(vocabSize: number, from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => ((from + index + 1) * 7919) % vocabSize);
}
