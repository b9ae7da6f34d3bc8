import { AssayError } from '../../lib/errors.ts';
import type { Reference } from '../compile/reference.ts';
import type { Forward } from './forward.ts';
import { logitError } from './logit-error.ts';
import { type KvShape, Sequence } from './sequence.ts';
import { spreadTokens } from './spread-tokens.ts';

/**
 * As a share of the logits' spread. Measured: a millionth with weights in 8 and 32 bits; 0.10 with SmolLM2-135M in 4 bits, by how many tokens
 * stand beside and not by which; a branch that sees the other one, or less of the prefix, 0.37 to 1.1.
 */
const TOLERANCE = 0.2;

/**
 * Runs a branch beside another and by itself, and compares. Devices differ in which inputs of an operator they heed, and one that
 * ignores the mask would mix the answers of a request in silence. Throws `engine_failed`.
 */
export async function checkPacking(forward: Forward, shape: KvShape): Promise<void> {
  const [prefix, other, branch] = [0, 8, 12].map((from, i) => spreadTokens(forward.vocabSize, [8, 4, 4][i]!, from)) as [
    number[],
    number[],
    number[],
  ];
  const inCompany = await logitsBehind(forward, shape, prefix, [other, branch]);
  const alone = await logitsBehind(forward, shape, prefix, [branch]);
  // written so that NaN fails too
  if (logitError([alone], [inCompany]) <= TOLERANCE) return;
  throw new AssayError(
    'engine_failed',
    'This device mixes up branches that run side by side; use another with --device.',
  );
}

/** Returns how far a model's logits are from the reference (`logitError`). */
export async function referenceError(forward: Forward, shape: KvShape, reference: Reference): Promise<number> {
  return logitError(reference.logits, await logitsOf(forward, shape, reference));
}

/** Returns the logits of a prompt at the reference's positions and tokens. */
export async function logitsOf(
  forward: Forward,
  shape: KvShape,
  { tokens: prompt, positions, stride }: Omit<Reference, 'logits'>,
): Promise<number[][]> {
  const sequence = new Sequence(shape, prompt.length);
  for (const token of prompt) sequence.append(token, sequence.length - 1);
  const logits = await forward.run([{ sequence, start: 0, rows: positions }]);
  return positions.map((_, row) => {
    const start = row * forward.vocabSize;
    const count = Math.ceil(forward.vocabSize / stride);
    return Array.from({ length: count }, (_, at) => logits[start + at * stride]!);
  });
}
/** The logits behind the last branch. */
async function logitsBehind(
  forward: Forward,
  shape: KvShape,
  prefix: readonly number[],
  branches: readonly (readonly number[])[],
): Promise<Float32Array> {
  const sequence = new Sequence(shape, prefix.length + branches.flat().length);
  for (const token of prefix) sequence.append(token, sequence.length - 1);
  await forward.run([{ sequence, start: 0, rows: [], keep: [prefix.length - 1] }]);
  const start = sequence.length;
  for (const branch of branches) {
    let parent = start - 1;
    for (const token of branch) parent = sequence.append(token, parent);
  }
  return (await forward.run([{ sequence, start, rows: [sequence.length - 1] }])).slice(0, forward.vocabSize);
}
