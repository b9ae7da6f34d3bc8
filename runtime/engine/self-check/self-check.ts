import { InferenceSession, Tensor } from 'onnxruntime-node';
import { at } from '../../../lib/at.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { Reference } from '../../compile/manifest.ts';
import { DataType, makeNode, makeTensor, type OnnxModel } from '../../onnx/format/model.ts';
import { bytesField, varintField } from '../../onnx/format/wire.ts';
import { encodeSmallModel } from '../../onnx/format/write-model.ts';
import type { KvShape } from '../cache/kv-shape.ts';
import { Sequence } from '../cache/sequence.ts';
import type { Forward } from '../forward/forward.ts';
import { floatsOf } from '../forward/forward.ts';

/**
 * Largest accepted `logitError` between a branch that runs beside another and the same branch alone. Measured: 1e-6
 * with weights in 8 and 32 bits; 0.10 with SmolLM2-135M in 4 bits, depending on how many other tokens are in the run,
 * not on which; 0.37 to 1.1 if a branch sees the other one, or less of the prefix.
 */
const TOLERANCE = 0.2;

/**
 * Runs a branch beside another one and alone, and compares its logits. Devices differ in which inputs of an operator
 * they respect; a device that ignores the mask would silently mix the answers of a request. Throws `engine_failed` if
 * the `logitError` exceeds 0.2.
 */
export async function checkPacking(forward: Forward, shape: KvShape): Promise<void> {
  const [prefix, other, branch] = [
    spreadTokens(forward.vocabSize, 8),
    spreadTokens(forward.vocabSize, 4, 8),
    spreadTokens(forward.vocabSize, 4, 12),
  ];
  const beside = await logitsAfter(forward, shape, prefix, [other, branch]);
  const alone = await logitsAfter(forward, shape, prefix, [branch]);
  // Written so that NaN fails too.
  if (logitError([alone], [beside]) <= TOLERANCE) return;
  throw new AssayError(
    'engine_failed',
    'This device mixes up branches that run side by side. Choose another with --device.',
  );
}

/**
 * Tells whether this machine computes a branch that is apart from its prefix with the same bits alone and in company.
 * Makes the model compute an even number of rows if only that makes them equal (`Forward.evenRows`).
 */
export async function findIndependence(forward: Forward, shape: KvShape): Promise<boolean> {
  if (!forward.apart) return false;
  if (await isIndependent(forward, shape)) return true;
  forward.evenRows = true;
  return isIndependent(forward, shape);
}

/** Tokens of the branches beside the compared one: some kernels change above 16 rows, others work in blocks of 32. */
const COMPANY = [
  [5, 8, 1],
  [5, 8, 1, 2, 50],
];

/**
 * Compares the logits of a branch, after three tokens and after one more, alone and in company of odd and even numbers
 * of rows.
 */
async function isIndependent(forward: Forward, shape: KvShape): Promise<boolean> {
  const alone = await exactLogits(forward, shape, []);
  for (const others of COMPANY) {
    const beside = await exactLogits(forward, shape, others);
    if (!alone.every((row, index) => row.every((logit, token) => Object.is(logit, at(at(beside, index), token))))) {
      return false;
    }
  }
  return true;
}

/**
 * Returns the logits of a branch of three tokens, and after one more, beside other branches with so many tokens. If
 * there are any, the prefix is read in two runs, beside another sequence.
 */
async function exactLogits(forward: Forward, shape: KvShape, others: readonly number[]): Promise<Float32Array[]> {
  const [prefix, text] = [spreadTokens(forward.vocabSize, 9), spreadTokens(forward.vocabSize, 13, 40)];
  const sequence = new Sequence(shape, prefix.length);
  const beside = new Sequence(shape, text.length + 1);
  const read = (into: Sequence, tokens: readonly number[]) => {
    const start = into.length;
    for (const token of tokens) into.append(token, into.length - 1);
    return { sequence: into, start, rows: [] };
  };
  if (others.length === 0) await forward.run([{ ...read(sequence, prefix), exact: true }]);
  else {
    await forward.run([{ ...read(sequence, prefix.slice(0, 4)), exact: true }, read(beside, text)]);
    await forward.run([{ ...read(sequence, prefix.slice(4)), exact: true }, read(beside, [1])]);
  }
  // In company, there is room for a longer branch: all have more cells then, which attention must not see.
  const branches = sequence.openBranches(others.length + 1, others.length === 0 ? 16 : 80);
  const logits: Float32Array[] = [];
  let tips = [3, ...others].map(() => prefix.length - 1);
  // The last of the others does not go on, so that both runs have an odd number of rows.
  for (const counts of [
    [3, ...others],
    [1, ...others.slice(1).map(() => 1)],
  ]) {
    const start = sequence.length;
    tips = counts.map((count, branch) => {
      const tip = at(tips, branch);
      const first = tip < prefix.length ? 1 : branches.indexOf(tip) + 1;
      const tokens = spreadTokens(forward.vocabSize, count, 20);
      return tokens.reduce((cell, token, index) => sequence.append(token, cell, undefined, first + index), tip);
    });
    const rows = [at(tips, 0)];
    logits.push((await forward.run([{ sequence, start, rows, exact: true }])).slice(0, forward.vocabSize));
  }
  return logits;
}

/** Returns the error (`logitError`) of a model's logits against the reference logits that its compile stored. */
export async function referenceError(forward: Forward, shape: KvShape, reference: Reference): Promise<number> {
  return logitError(reference.logits, await logitsOf(forward, shape, reference));
}

/**
 * Returns the logits of a prompt, one row for each of `positions`: those of every `stride`-th token of the vocabulary.
 */
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
    return Array.from({ length: count }, (_, index) => at(logits, start + index * stride));
  });
}

/** Runs branches side by side after a prefix. Returns the logits after the last branch. */
async function logitsAfter(
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

/**
 * Returns the error of logits against the expected ones: the sum of absolute differences, divided by the sum of
 * absolute deviations of the expected logits from their row's mean. 0 if they are equal, about 1 if they are unrelated,
 * NaN if any logit is not a number.
 */
export function logitError(wanted: readonly Row[], got: readonly Row[]): number {
  let difference = 0;
  let deviation = 0;
  for (const [at, row] of wanted.entries()) {
    let sum = 0;
    for (const logit of row) sum += logit;
    const mean = sum / row.length;
    for (const [token, logit] of row.entries()) {
      difference += Math.abs(logit - got[at]![token]!);
      deviation += Math.abs(logit - mean);
    }
  }
  return difference / deviation;
}

type Row = Float32Array | number[];

/**
 * Returns `count` token ids scattered over the vocabulary, for test prompts: a fixed series, from its index `from` on.
 */
export function spreadTokens(vocabSize: number, count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, index) => ((from + index + 1) * 7919) % vocabSize);
}

/** IR version of ONNX 1.13, which every current onnxruntime reads. */
const IR_VERSION = 8;
const DEPTH = 64;
const WIDTH = 16;
const LARGEST = { activation: 255, weight: 127 };

let saturates: Promise<boolean> | undefined;

/**
 * Tells whether onnxruntime computes MatMuls of unsigned 8-bit activations and signed 8-bit weights wrongly on this
 * CPU. Its kernels for AVX2 and for AVX-512 without VNNI add pairs of products in 16 bits and clamp the sum
 * (onnxruntime, "Quantize ONNX models", "When and why do I need to try U8U8?"). Measured once per process, because no
 * list of CPU flags says which kernel runs.
 */
export function int8ProductsSaturate(): Promise<boolean> {
  saturates ??= largestProductsAreExact({ logSeverityLevel: 3, intraOpNumThreads: 1 }).then((exact) => !exact);
  return saturates;
}

/**
 * Multiplies the largest 8-bit activations by the largest weights, on the CPU with these session options. Returns true
 * if every sum is exact.
 */
export async function largestProductsAreExact(options: InferenceSession.SessionOptions): Promise<boolean> {
  const model = encodeSmallModel(largestProductsModel());
  const session = await InferenceSession.create(model, { ...options, executionProviders: ['cpu'] });
  const exact = DEPTH * LARGEST.activation * LARGEST.weight;
  try {
    // onnxruntime has separate kernels for one row and for several rows.
    for (const rows of [1, 8]) {
      const x = new Tensor('uint8', new Uint8Array(rows * DEPTH).fill(LARGEST.activation), [rows, DEPTH]);
      const y = floatsOf(await session.run({ x }), 'y');
      if (y.some((value) => value !== exact)) return false;
    }
    return true;
  } finally {
    await session.release();
  }
}

/**
 * Returns a graph that multiplies its input `x` by the largest weights, with the operator that the 8-bit precision
 * uses (`compile/weights/int8.ts`).
 */
function largestProductsModel(): OnnxModel {
  const weights = new Int8Array(DEPTH * WIDTH).fill(LARGEST.weight);
  const one = makeTensor('one', [], Float32Array.of(1));
  return {
    opsets: new Map([
      ['', 17],
      ['com.microsoft', 1],
    ]),
    graph: {
      nodes: [makeNode('MatMulIntegerToFloat', ['x', 'weights', 'one', 'one'], ['y'], {}, 'com.microsoft')],
      initializers: new Map([
        ['one', one],
        ['weights', makeTensor('weights', [DEPTH, WIDTH], weights)],
      ]),
      inputs: [{ name: 'x', dataType: DataType.uint8, dims: ['rows', DEPTH] }],
      outputs: [{ name: 'y', dataType: DataType.float, dims: ['rows', WIDTH] }],
      rest: [bytesField(2, 'largest products')],
    },
    rest: [varintField(1, IR_VERSION)],
  };
}
