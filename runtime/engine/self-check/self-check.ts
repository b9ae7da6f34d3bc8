import { InferenceSession, Tensor } from 'onnxruntime-node';
import { at } from '../../../lib/at.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { Reference } from '../../compile/manifest.ts';
import { DataType, makeNode, makeTensor, type OnnxModel } from '../../onnx/format/model.ts';
import { bytesField, varintField } from '../../onnx/format/wire.ts';
import { encodeSmallModel } from '../../onnx/format/write-model.ts';
import { COLUMNS } from '../../onnx/rewrites/two-part-attention.ts';
import type { BranchCells } from '../cache/branch-cells.ts';
import { floatBuffer, type KvShape } from '../cache/kv-shape.ts';
import { Sequence } from '../cache/sequence.ts';
import type { Forward } from '../forward/forward.ts';
import { floatsOf, ROW_BLOCKS } from '../forward/forward.ts';
import { Random } from '../random.ts';

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
 * Makes the model compute rows in blocks if only that makes them equal (`Forward.rowBlock`).
 */
export async function findIndependence(forward: Forward, shape: KvShape): Promise<boolean> {
  if (!forward.apart) return false;
  const { rowBlock: least = 1 } = forward;
  for (const block of ROW_BLOCKS) {
    if (block < least) continue;
    forward.rowBlock = block;
    if (await isIndependent(forward, shape)) return true;
  }
  return false;
}

/** Numbers of tokens of the compared branches. One row alone has kernels of its own, and an odd last row others. */
const COMPARED = [3, 1, 6];
/** The same of the branches beside them: some kernels change above 16 rows, others work in blocks of 32. */
const COMPANY = [
  [5, 8, 2],
  [5, 8, 2, 40],
];
/**
 * Numbers of new tokens of a prefix in each of its runs: some kernels add values of attention in blocks of 4 cells, and
 * products of large heads in another order over at most 64.
 */
const PARTS = [7, 11, 13, 36];
const PREFIX = PARTS.reduce((sum, count) => sum + count, 0);
/** Number of tokens of a text that is read beside it in the first run. */
const TEXT = 27;

/**
 * Compares the keys and values of a prefix that is read in one run, or in four and beside another sequence; then those
 * of some branches after it, and their logits after the first run and after one more token, alone and in company of odd
 * and even numbers of rows.
 */
async function isIndependent(forward: Forward, shape: KvShape): Promise<boolean> {
  const alone = await readPrefix(forward, shape, false);
  const beside = await readPrefix(forward, shape, true);
  // Without room for more cells.
  for (const sequence of [alone, beside]) sequence.resize(PREFIX);
  const kvOf = ({ layers }: Sequence) => layers.flatMap(({ key, value }) => [floatBuffer(key), floatBuffer(value)]);
  if (!sameBits(kvOf(alone), kvOf(beside))) return false;
  const wanted: Float32Array[] = [];
  for (const index of COMPARED.keys()) wanted.push(...(await readBranches(forward, shape, alone, [index])));
  for (const others of COMPANY) {
    const found = await readBranches(forward, shape, beside, [...COMPARED.keys()], others);
    if (!sameBits(wanted, found)) return false;
  }
  return true;
}

function sameBits(wanted: readonly Float32Array[], found: readonly Float32Array[]): boolean {
  return wanted.every((row, index) => row.every((value, i) => Object.is(value, at(at(found, index), i))));
}

/** Returns a sequence with a prefix, read in one run, or in four, beside another sequence where runs have several. */
async function readPrefix(forward: Forward, shape: KvShape, inCompany: boolean): Promise<Sequence> {
  const [sequence, beside] = [new Sequence(shape, PREFIX), new Sequence(shape, TEXT + PARTS.length)];
  const read = (into: Sequence, count: number) => {
    const start = into.length;
    const tokens = spreadTokens(forward.vocabSize, count, start);
    for (const token of tokens) into.append(token, into.length - 1);
    return { sequence: into, start, rows: [], keep: [into.length - 1], exact: into === sequence };
  };
  if (!inCompany) await forward.run([read(sequence, PREFIX)]);
  else {
    for (const [index, count] of PARTS.entries()) {
      const own = read(sequence, count);
      await forward.run(forward.slots > 1 ? [own, read(beside, index === 0 ? TEXT : 1)] : [own]);
    }
  }
  return sequence;
}

/**
 * Computes branches after a prefix, and then one more token of each. Returns for each compared one the logits after
 * both runs, and its keys and values. Forgets the branches.
 *
 * @param compared indices in `COMPARED`
 * @param others numbers of tokens of the branches beside them
 */
async function readBranches(
  forward: Forward,
  shape: KvShape,
  sequence: Sequence,
  compared: readonly number[],
  others: readonly number[] = [],
): Promise<Float32Array[]> {
  const prefix = sequence.length;
  const counts = [...compared.map((index) => at(COMPARED, index)), ...others];
  // In company, there is room for a longer branch: all have more cells then, which attention must not see.
  const cells = sequence.openBranches(counts.length, others.length === 0 ? 16 : 80);
  const found: Float32Array[][] = compared.map(() => []);
  let tips = counts.map(() => prefix - 1);
  for (const more of [false, true]) {
    const start = sequence.length;
    tips = counts.map((count, branch) => {
      const tip = at(tips, branch);
      // One of the others does not go on, so that both runs have an odd number of rows once.
      if (more && branch === compared.length) return tip;
      const seed = 20 + 10 * (compared[branch] ?? branch);
      const tokens = more
        ? spreadTokens(forward.vocabSize, 1, seed + count)
        : spreadTokens(forward.vocabSize, count, seed);
      const first = more ? cells.indexOf(tip) + 1 : 1;
      return tokens.reduce((cell, token, index) => sequence.append(token, cell, undefined, first + index), tip);
    });
    const rows = tips.filter((tip) => tip >= start);
    const logits = await forward.run([{ sequence, start, rows, keep: rows, exact: true }]);
    for (const [row, of] of found.entries())
      of.push(logits.slice(row * forward.vocabSize, (row + 1) * forward.vocabSize));
  }
  for (const [branch, of] of found.entries()) of.push(...branchKv(cells, shape, at(tips, branch)));
  sequence.truncate(prefix);
  sequence.branches = null;
  return found.flat();
}

/** Returns the keys and values of a branch that ends with the cell `tip`, head by head. */
function branchKv(cells: BranchCells, { layers }: KvShape, tip: number): Float32Array[] {
  const [place, end] = [cells.placeOf(tip), cells.indexOf(tip) + 1];
  return layers.flatMap(({ heads, headSize }, layer) =>
    Array.from({ length: 2 * heads }, (_, index) => {
      const { key, value } = at(cells.layers, layer);
      const width = headSize + 1;
      const first = (place * heads + (index >> 1)) * cells.length * width;
      return floatBuffer(index % 2 === 0 ? key : value).slice(first + width, first + end * width);
    }),
  );
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

/** Number of cells of a prefix over which values are added (`valuesAreIndependent`). */
const CELLS = 2048;

/**
 * Tells whether attention adds the values of a long prefix in one order for few rows and for many. onnxruntime divides
 * the columns of a product with few rows among threads, where it has more threads than key heads, and adds over fewer
 * columns in larger pieces (core/mlas/lib/sgemm.cpp). A prefix long enough to show it would take long to read.
 *
 * @param options session options of the model
 * @param columnsFor `Manifest.threads`
 */
export async function valuesAreIndependent(
  options: InferenceSession.SessionOptions,
  { layers }: KvShape,
  columnsFor = 0,
): Promise<boolean> {
  const session = await InferenceSession.create(encodeSmallModel(valuesModel()), options);
  const random = new Random(1);
  const noise = (length: number) => Float32Array.from({ length }, () => random.uniform() - 0.5);
  try {
    // The values of branches have one element more.
    const kinds = new Map(
      layers.flatMap(({ heads, headSize }) =>
        (columnsFor > heads ? [COLUMNS, headSize % COLUMNS || COLUMNS, 2] : [headSize, headSize + 1]).map((width) => [
          `${heads}/${width}`,
          { heads, width },
        ]),
      ),
    );
    for (const { heads, width } of kinds.values()) {
      const values = new Tensor('float32', noise(heads * CELLS * width), [1, heads, CELLS, width]);
      const row = noise(CELLS);
      const first = async (rows: number): Promise<Float32Array> => {
        const weights = new Float32Array(heads * rows * CELLS);
        for (let head = 0; head < heads; head++) weights.set(row, head * rows * CELLS);
        const results = floatsOf(
          await session.run({ weights: new Tensor('float32', weights, [1, heads, rows, CELLS]), values }),
          'y',
        );
        return results.slice(0, width);
      };
      const wanted = await first(2 * width);
      for (const rows of [2, 16]) if (!sameBits([wanted], [await first(rows)])) return false;
    }
    return true;
  } finally {
    await session.release();
  }
}

let dependOnRows: Promise<boolean> | undefined;

/**
 * Tells whether onnxruntime multiplies few rows of floats with other kernels than many, which add in another order:
 * those of KleidiAI for SME take 16 rows and more, or one alone, and leave the others to NEON. Measured once per
 * process, because no list of CPU flags says which kernel runs.
 */
export function floatProductsDependOnRows(): Promise<boolean> {
  const shape: KvShape = { layers: [{ heads: 1, headSize: 64 }] };
  dependOnRows ??=
    process.arch === 'arm64'
      ? valuesAreIndependent({ logSeverityLevel: 3, intraOpNumThreads: 1 }, shape).then((alike) => !alike)
      : Promise.resolve(false);
  return dependOnRows;
}

function valuesModel(): OnnxModel {
  const value = (name: string) => ({ name, dataType: DataType.float, dims: new Array<null>(4).fill(null) });
  return {
    opsets: new Map([['', 17]]),
    graph: {
      nodes: [makeNode('MatMul', ['weights', 'values'], ['y'], {})],
      initializers: new Map(),
      inputs: [value('weights'), value('values')],
      outputs: [value('y')],
      rest: [bytesField(2, 'values')],
    },
    rest: [varintField(1, IR_VERSION)],
  };
}

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
