import { at } from '../../lib/at.ts';
import { AssayError } from '../../lib/errors.ts';
import { UNUSABLE_ERROR } from '../compile/choose-form.ts';
import type { Reference } from '../compile/reference.ts';
import { Sequence } from '../engine/cache/sequence.ts';
import { kvShape, type Model, openModel } from '../engine/model.ts';
import { logitsOf, referenceError } from '../engine/self-check/self-check.ts';
import { spreadTokens } from '../engine/self-check/spread-tokens.ts';

/**
 * Size of the measured request, which resembles real ones: tokens of the prefix, branches after it, and decoding steps.
 */
const PREFIX = 128;
const BRANCHES = 16;
const STEPS = 4;
/** Maximum number of runs of the request. The fastest counts, because other processes slow the others down. */
const ROUNDS = 5;
/** Milliseconds after which no further run starts, except the second. */
const MOST_MS = 4_000;

/** Distance between the positions of the prompt whose logits are stored as a reference. */
const EVERY_POSITION = 4;
/** Maximum number of vocabulary entries whose logits are stored at each position. */
const MOST_LOGITS = 512;

/**
 * Runs a prompt through the model in `folder`, which has 32-bit weights, and returns its logits as the reference.
 * Returns null if the model does not load on this CPU.
 */
export async function referenceFrom(folder: string, tokens: readonly number[]): Promise<Reference | null> {
  const model = await openModel(folder).catch(nullIfNotLoadable);
  if (!model) return null;
  const { manifest, forward, close } = model;
  try {
    const positions = [...tokens.keys()].filter((position) => (position + 1) % EVERY_POSITION === 0);
    const probe = {
      tokens: [...tokens],
      positions: positions.length > 0 ? positions : [tokens.length - 1],
      stride: Math.max(1, Math.ceil(manifest.vocabSize / MOST_LOGITS)),
    };
    const logits = await logitsOf(forward, kvShape(manifest), probe);
    // Five digits are far more precise than the logits of any weight form.
    return { ...probe, logits: logits.map((row) => row.map((logit) => Number(logit.toPrecision(5)))) };
  } finally {
    await close();
  }
}

/**
 * Measures the weight form in `folder`: the error of its logits against the reference and, with `withSpeed`, the
 * processor time of a small request in milliseconds, otherwise 0. For a form that does not load on this CPU or gives no
 * finite error, the error is `UNUSABLE_ERROR`.
 */
export async function measureForm(
  folder: string,
  reference: Reference,
  withSpeed: boolean,
): Promise<{ error: number; ms: number }> {
  const model = await openModel(folder).catch(nullIfNotLoadable);
  if (!model) return { error: UNUSABLE_ERROR, ms: 0 };
  try {
    const error = await referenceError(model.forward, kvShape(model.manifest), reference);
    // The error is stored as JSON, which cannot represent NaN or infinity.
    return { error: Number.isFinite(error) ? error : UNUSABLE_ERROR, ms: withSpeed ? await requestMs(model) : 0 };
  } finally {
    await model.close();
  }
}

/**
 * Returns null for the error of a graph that cannot be opened on the CPU, such as one for another device. Throws other
 * errors.
 */
function nullIfNotLoadable(error: unknown): null {
  if (error instanceof AssayError && error.code === 'engine_failed') return null;
  throw error;
}

async function requestMs({ forward, manifest }: Model): Promise<number> {
  const prefix = spreadTokens(manifest.vocabSize, Math.min(PREFIX, Math.floor(manifest.contextLength / 2)));
  const began = performance.now();
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS && (round < 2 || performance.now() - began < MOST_MS); round++) {
    const sequence = new Sequence(kvShape(manifest), prefix.length + BRANCHES * STEPS);
    const cpu = process.cpuUsage();
    for (const token of prefix) sequence.append(token, sequence.length - 1);
    await forward.run([{ sequence, start: 0, rows: [prefix.length - 1], keep: [prefix.length - 1] }]);
    let ends = Array.from({ length: BRANCHES }, () => prefix.length - 1);
    for (let step = 0; step < STEPS; step++) {
      const start = sequence.length;
      ends = ends.map((parent, branch) => sequence.append(at(prefix, branch % prefix.length), parent));
      await forward.run([{ sequence, start, rows: ends, keep: ends }]);
    }
    const { user, system } = process.cpuUsage(cpu);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}
