import { type InferenceSession, type InferenceSessionHandler, type OnnxValue, Tensor } from 'onnxruntime-node';
import { at } from '../../../lib/at.ts';
import { kernelBlocks } from '../../compile/kernels.ts';
import type { Manifest } from '../../compile/manifest.ts';
import {
  BATCH_ROWS,
  NOTHING,
  SEVERAL,
  SLOT_KEYS,
  SLOT_LAST_KEY,
  SLOT_POSITIONS,
  SLOT_SIZES,
  slotName,
} from '../../onnx/rewrites/attention-slots.ts';
import { isEndOfResults } from '../../onnx/rewrites/end-results.ts';
import { APART, MOST_IN_ORDER } from '../../onnx/rewrites/two-part-attention.ts';
import type { Sequence } from '../cache/sequence.ts';
import { type BoundBranches, BranchFeeds } from './branch-feeds.ts';
import { type Forward, type RowBlock, rowsMissing, Scratch, type SequenceRun } from './forward.ts';
import { type MediaFeatures, tokenFeeds } from './media-feeds.ts';
import { StateFeeds } from './state-feeds.ts';
import { gather, HIDDEN, int64, integers, kvTensors, LogitRows, positionTensor } from './tensors.ts';

/**
 * Least number of cells over which GroupQueryAttention adds the products of large heads (`MOST_IN_ORDER`) in the order
 * in which it does over any larger number: more than 64, and a few that `#runExact` may leave for a run of their own.
 */
const LEAST_CELLS = 72;

/**
 * Runs the tokens of all branches packed into one sequence: each branch's positions continue from the prefix, and a
 * mask hides the branches from each other. The KV buffers are both past and present tensors, so nothing is copied.
 */
export class PackedForward implements Forward {
  readonly vocabSize: number;
  readonly slots: number;
  readonly apart: boolean;
  rowBlock: RowBlock;
  /** `KernelBlocks.cells` */
  readonly #cellBlock: number;
  /** Least number of cells of a run in which cells are exact. */
  readonly #leastCells: number;
  /** True for a model with recurrent layers. */
  readonly #hasStates: boolean;
  readonly #batch: PackedGraph;
  readonly #alone: PackedGraph;

  /**
   * @param alone session of the graph `manifest.alone`, for runs of a single sequence; without it, all runs use
   *   `session`
   */
  constructor(session: InferenceSession, manifest: Manifest, alone?: InferenceSession) {
    const { slots, alone: aloneGraph, ...facts } = manifest;
    this.vocabSize = manifest.vocabSize;
    this.slots = slots ?? 1;
    this.apart = manifest.branchMasks !== undefined;
    // In a tiny model, rounded activations can hide from the test at the load that the last rows are others.
    const { fourBitRows, cells } = kernelBlocks();
    this.rowBlock = manifest.precision === 'int4' ? fourBitRows : 1;
    this.#cellBlock = cells;
    this.#leastCells = addsInPieces(manifest.kv) ? LEAST_CELLS : 1;
    this.#hasStates = manifest.states !== undefined;
    this.#batch = new PackedGraph(session, manifest);
    this.#alone = alone && aloneGraph ? new PackedGraph(alone, { ...facts, ...aloneGraph }) : this.#batch;
  }

  /** Runs branches that are apart from their prefix after all other sequences. */
  async run(batch: readonly SequenceRun[]): Promise<Float32Array> {
    const apart = batch.filter(isApart);
    const others = batch.filter((one) => !isApart(one));
    if (others.length === 0) return this.#runApart(batch);
    const read = await this.#runTogether(others);
    this.#markExact(others);
    if (apart.length === 0) return read;
    const before = new LogitRows(read.slice(), this.vocabSize);
    const after = new LogitRows(await this.#runApart(apart), this.vocabSize);
    return joined(batch.map((one) => (isApart(one) ? after : before).take(one.rows.length)));
  }

  /**
   * Marks the new cells that have the same bits as in any other run: those of no row alone or left over, and, unless
   * the run was padded for it, of no cell left over.
   */
  #markExact(batch: readonly SequenceRun[]): void {
    const cells = batch.reduce((sum, { sequence, start }) => sum + sequence.length - start, 0);
    const whole = rowsMissing(cells, this.rowBlock) === 0;
    for (const { sequence, start, exact } of batch) {
      if (start > sequence.exactLength) continue;
      const alike = exact || (whole && sequence.length - start > 1 && sequence.length >= this.#leastCells);
      const end = alike ? sequence.trunkLength : start;
      sequence.exactLength = exact ? end : end - (end % this.#cellBlock);
    }
  }

  async #runApart(batch: readonly SequenceRun[]): Promise<Float32Array> {
    const stretches = batch.map(({ sequence, start, rows, keep = [], media }) => {
      const end = sequence.length;
      return { sequence, start, end, rows, keep, media };
    });
    // With a key head for each query head, a job's only row would be multiplied by the prefix alone, by another kernel.
    if (
      stretches.length === 1 ||
      !this.#batch.branches?.oneQueryEach ||
      stretches.every(({ start, end }) => end - start > 1)
    )
      return this.#batch.run(stretches, this.rowBlock);
    const logits: Float32Array[] = [];
    for (const stretch of stretches) logits.push((await this.#batch.run([stretch], this.rowBlock)).slice());
    return joined(logits);
  }

  /** Runs cells in a run with exact ones after whose trunks there are as many more as the kernels need. */
  async #runTogether(batch: readonly SequenceRun[]): Promise<Float32Array> {
    const exact = batch.some((one) => one.exact);
    if (!exact) return this.#runParts(batch, exact);
    const trunks = batch.filter(
      ({ sequence: { branches, trunkLength, length } }) => !branches && trunkLength === length,
    );
    for (const { sequence, start } of trunks) sequence.pad(this.#paddingFor(start, sequence.length));
    try {
      return await this.#runParts(batch, exact);
    } finally {
      for (const { sequence } of trunks) sequence.unpad();
    }
  }

  /**
   * Returns how many cells must follow those of a trunk from `start` on: up to the least number, in whole blocks of
   * those that attention adds at a time. With states, which cannot go back to an earlier cell (`#runExact`), there are
   * more for the rows that are missing; where both are in blocks, some may still be, which the check at the load finds.
   */
  #paddingFor(start: number, length: number): number {
    const block = this.#cellBlock;
    const padding = Math.ceil(Math.max(length, this.#leastCells) / block) * block - length;
    if (!this.#hasStates) return padding;
    const rows = length + padding - start;
    const missing = rowsMissing(rows, this.rowBlock) || Number(rows === 1);
    return padding + Math.ceil(missing / block) * block;
  }

  async #runParts(batch: readonly SequenceRun[], exact: boolean): Promise<Float32Array> {
    const parts = batch.map(splitAtTrunk);
    if (parts.every(({ branches }) => branches === null)) {
      const whole = parts.map(({ first }) => first);
      return exact ? this.#runExact(whole) : this.#run(whole);
    }
    const firsts = parts.map((part) => part.first);
    const first = new LogitRows((await (exact ? this.#runExact(firsts) : this.#run(firsts))).slice(), this.vocabSize);
    const branches = new LogitRows(await this.#run(parts.flatMap((part) => part.branches ?? [])), this.vocabSize);
    const takeBoth = (part: (typeof parts)[number]) => [
      first.take(part.first.rows.length),
      branches.take(part.branches?.rows.length ?? 0),
    ];
    return joined(parts.flatMap(takeBoth));
  }

  #run(stretches: readonly Stretch[], block?: RowBlock): Promise<Float32Array> {
    return (stretches.length === 1 ? this.#alone : this.#batch).run(stretches, block);
  }

  /**
   * Runs so many cells that no row is missing (`rowsMissing`): computes those before a stretch again, which changes
   * nothing. Where no stretch has so many, the last cells of the longest stretch get a run of their own, with those
   * before them.
   */
  async #runExact(stretches: readonly Stretch[]): Promise<Float32Array> {
    const block = this.rowBlock;
    const missing = rowsMissing(cellsIn(stretches), block);
    if (missing === 0 || this.#hasStates) return this.#run(stretches, block);
    // A run from cell 0 on has no past, and then only a trunk has its positions (`splitAtTrunk`).
    const begun = stretches.findIndex(({ start }) => start > missing);
    if (begun >= 0) return this.#run(stretches.with(begun, earlier(at(stretches, begun), missing)), block);
    // Those whose ends are whole blocks of cells stay so.
    const uneven = [...stretches.keys()].filter(
      (index) => this.#cellBlock === 1 || lengthOf(stretches[index]) % this.#cellBlock > 0,
    );
    const [longest = 0] = uneven.sort((a, b) => lengthOf(stretches[b]) - lengthOf(stretches[a]));
    const { rows, ...cut } = at(stretches, longest);
    const end = cut.end - (block > 1 ? block - missing : 1);
    if (end - cut.start <= missing) return this.#run(stretches, block);
    const most = stretches.with(longest, { ...cut, end, rows: rows.filter((row) => row < end) });
    const before = new LogitRows((await this.#run(most, block)).slice(), this.vocabSize);
    const last = await this.#run([{ ...cut, start: end - missing, rows: rows.filter((row) => row >= end) }], block);
    return joined(most.flatMap((one, index) => [before.take(one.rows.length), ...(index === longest ? [last] : [])]));
  }
}

/** Tells whether a layer has heads with more elements than onnxruntime adds in one order. */
export function addsInPieces(layers: readonly { headSize: number }[]): boolean {
  return layers.some(({ headSize }) => headSize > MOST_IN_ORDER);
}

/** Adds the cells before a stretch to it. */
function earlier(stretch: Stretch, cells: number): Stretch {
  return { ...stretch, start: stretch.start - cells };
}

function lengthOf({ start, end }: Pick<Stretch, 'start' | 'end'> = { start: 0, end: 0 }): number {
  return end - start;
}

function cellsIn(stretches: readonly Pick<Stretch, 'start' | 'end'>[]): number {
  return stretches.reduce((sum, stretch) => sum + lengthOf(stretch), 0);
}

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Tells whether the new cells of a sequence are those of branches that are apart from their prefix. */
function isApart({ sequence: { branches }, start }: Pick<SequenceRun, 'sequence' | 'start'>): boolean {
  return branches !== null && start >= branches.prefix;
}

/**
 * Splits the new cells of a sequence into two runs, the trunk and the branches, if it has both and no past. With an
 * empty past, GroupQueryAttention ignores the given positions and counts from 0, which is correct for the trunk only.
 */
function splitAtTrunk({ sequence, start, rows, keep = [], media }: SequenceRun): {
  first: Stretch;
  branches: Stretch | null;
} {
  const { length, trunkLength, parents } = sequence;
  if (start > 0 || trunkLength === length)
    return { first: { sequence, start, end: length, rows, keep, media }, branches: null };
  const inTrunk = rows.filter((row) => row < trunkLength);
  const branching = parents.subarray(trunkLength, length).filter((cell) => cell >= 0 && cell < trunkLength);
  const keepFirst = [...new Set([...keep.filter((cell) => cell < trunkLength), ...branching])];
  const keepBranches = keep.filter((cell) => cell >= trunkLength);
  return {
    first: { sequence, start, end: trunkLength, rows: inTrunk, keep: keepFirst, media },
    branches: {
      sequence,
      start: trunkLength,
      end: length,
      rows: rows.slice(inTrunk.length),
      keep: keepBranches,
      media,
    },
  };
}

/**
 * Runs a graph whose sequences may hold packed branches: one sequence, or as many as the graph has slots. The KV
 * buffers are both past and present tensors, so nothing is copied.
 */
class PackedGraph {
  readonly branches: BranchFeeds | undefined;
  readonly #session: InferenceSession;
  readonly #manifest: Manifest;
  readonly #slots: KvSlot[];
  readonly #logits = new Scratch((length) => new Float32Array(length));
  readonly #states: StateFeeds | undefined;
  /** Least number of steps of a lane in a run with exact cells: NEON has a kernel of its own for a single one. */
  readonly #leastSteps = kernelBlocks().cells > 1 ? 2 : 1;

  constructor(session: InferenceSession, manifest: Manifest) {
    this.#session = session;
    this.#manifest = manifest;
    const { states, inputs } = manifest;
    this.#states = states && inputs.lanes && new StateFeeds(states, inputs.lanes);
    this.#slots = Array.from({ length: manifest.slots ?? 1 }, (_, slot) => new KvSlot(manifest, slot));
    this.branches = manifest.branchMasks && new BranchFeeds(manifest, manifest.branchMasks);
  }

  /**
   * Runs the given cells of several sequences together. Returns the requested rows of logits, sequence by sequence. The
   * next run overwrites the returned array.
   *
   * @param block in whose multiples rows must be computed, in runs with exact cells (`rowsMissing`)
   */
  async run(stretches: readonly Stretch[], block?: RowBlock): Promise<Float32Array> {
    const { inputs, logits, end, vocabSize } = this.#manifest;
    const apart = stretches.some(isApart) ? this.branches : undefined;
    const cells = apart ? apart.padded(stretches, block ?? 1) : stretches;
    const feeds = tokenFeeds(this.#manifest, cells);
    const fetches: Feeds = {};
    if (inputs.positions) feeds[inputs.positions] = positionTensor(inputs, cells);
    const bound = apart?.prepare(stretches, cells.length - stretches.length);
    if (bound) this.#bindBranches(bound, stretches.length, feeds, fetches);
    else this.#bindSlots(stretches, feeds, fetches);
    const [first] = stretches;
    const count = cellsIn(stretches);
    const states = first && this.#states?.prepare(first, cellsIn(cells), block ? this.#leastSteps : 1);
    Object.assign(feeds, states?.feeds);
    Object.assign(fetches, states?.fetches);
    const rows = rowsOf(stretches);
    // If no row is requested, one is computed and dropped, because the MatMul of the output head accepts no empty
    // input.
    const read = rows.length > 0 ? [...rows] : [count - 1];
    if (block && rows.length > 0) read.push(...Array<number>(rowsMissing(read.length, block)).fill(count - 1));
    if (inputs.rows) feeds[inputs.rows] = int64(read);
    const height = inputs.rows ? read.length : count;
    const buffer = this.#logits.take(height * vocabSize);
    fetches[logits] = new Tensor('float32', buffer, [1, height, vocabSize]);
    await runDirectly(this.#session, feeds, end ? { [end]: null, ...fetches } : fetches).catch((error: unknown) => {
      if (!isEndOfResults(error)) throw error;
    });
    states?.store();
    bound?.store();
    return inputs.rows ? buffer.subarray(0, rows.length * vocabSize) : gather(buffer, rows, vocabSize);
  }

  /** Binds branches that are apart from their prefix. Each job uses a slot for its prefix. */
  #bindBranches(bound: BoundBranches, jobs: number, feeds: Feeds, fetches: Feeds): void {
    feeds[SEVERAL] = new Tensor('bool', [true], [1]);
    feeds[APART] = new Tensor('bool', [true], [1]);
    feeds[NOTHING] = new Tensor('float32', new Float32Array(0), [0]);
    Object.assign(feeds, bound.feeds);
    Object.assign(fetches, bound.fetches);
    if (jobs > 1) for (const slot of this.#slots.slice(jobs)) slot.leaveEmpty(feeds);
  }

  /** Binds the sequences to the first slots. Feeds the other slots only if there are several sequences. */
  #bindSlots(stretches: readonly Stretch[], feeds: Feeds, fetches: Feeds): void {
    const several = stretches.length > 1;
    for (const [index, slot] of this.#slots.entries()) {
      const stretch = stretches[index];
      if (stretch) slot.bind(stretch, feeds, fetches);
      else if (several) slot.leaveEmpty(feeds);
    }
    const { slots } = this.#manifest;
    if (!slots) return;
    feeds[SEVERAL] = new Tensor('bool', [several], [1]);
    feeds[APART] = new Tensor('bool', [false], [1]);
    feeds[NOTHING] = new Tensor('float32', new Float32Array(0), [0]);
    if (!several) return;
    const sizes = stretches.map(({ start, end }) => end - start);
    const empty = slots - sizes.length;
    feeds[SLOT_SIZES] = int64([...sizes, ...Array<number>(empty).fill(1), slots - empty]);
    feeds[BATCH_ROWS] = int64([sizes.reduce((sum, size) => sum + size, 0)]);
  }
}

/** Converts the requested cells of each sequence to row numbers of the whole run. */
function rowsOf(stretches: readonly Stretch[]): number[] {
  let first = 0;
  return stretches.flatMap(({ start, end, rows }) => {
    const offset = first - start;
    first += end - start;
    return rows.map((row) => row + offset);
  });
}

/**
 * Runs a session without the checks of the JavaScript class around it (onnxruntime-common,
 * lib/inference-session-impl.ts). The class demands every input, also those that only a skipped branch of the graph
 * reads, and searches all fetches for each of the session's outputs: 0.2 ms a run with eight slots in 24 layers.
 * onnxruntime itself checks what it is given.
 *
 * @param fetches outputs to compute, each with the tensor to write it to; null lets onnxruntime allocate one
 */
function runDirectly(
  session: InferenceSession,
  feeds: Readonly<Record<string, OnnxValue>>,
  fetches: Readonly<Record<string, OnnxValue | null>>,
): Promise<unknown> {
  // A cast: the class has this member, but does not declare it.
  const { handler } = session as InferenceSession & { handler: InferenceSessionHandler };
  return handler.run(feeds, fetches, {});
}

type Feeds = Record<string, Tensor>;

/**
 * Describes the consecutive cells of a sequence that one run computes: from `start` to before `end`. The run ignores
 * the cells from `end` on.
 */
interface Stretch {
  sequence: Sequence;
  start: number;
  end: number;
  rows: readonly number[];
  /** Cells after which to store a state snapshot, for models with recurrent layers. */
  keep: readonly number[];
  /** Features of the images and recordings that tokens of the sequence represent. */
  media?: readonly MediaFeatures[] | undefined;
}

/**
 * Binds one sequence to its inputs and outputs of a graph: KV buffers, lengths, positions and masks. A batched graph
 * has these once for each of its slots, under numbered names; a graph without slots has them once, under their own
 * names.
 */
class KvSlot {
  readonly #manifest: Manifest;
  readonly #name: (name: string) => string;
  /** Input names of past keys and values, layer by layer. */
  readonly #past: readonly string[];
  readonly #present: readonly string[];
  readonly #masks: Scratch<Float32Array<ArrayBuffer>>[];
  readonly #empty: Feeds;
  #zeros = new Float32Array(0);

  constructor(manifest: Manifest, slot: number) {
    this.#manifest = manifest;
    this.#name = manifest.slots ? (name) => slotName(slot, name) : (name) => name;
    this.#past = manifest.kv.flatMap(({ past }) => past.map(this.#name));
    this.#present = manifest.kv.flatMap(({ present }) => present.map(this.#name));
    this.#masks = manifest.inputs.masks.map(() => new Scratch((length) => new Float32Array(length)));
    this.#empty = manifest.slots ? this.#emptyFeeds() : {};
  }

  /** Adds the input and output tensors for consecutive cells of a sequence to `feeds` and `fetches`. */
  bind({ sequence, start, end }: Stretch, feeds: Feeds, fetches: Feeds): void {
    for (const [index, tensor] of kvTensors(this.#manifest, sequence).entries()) {
      feeds[this.#past[index] as string] = tensor;
      fetches[this.#present[index] as string] = tensor;
    }
    for (const [index, { name, window }] of this.#manifest.inputs.masks.entries()) {
      const mask = this.#mask(index, sequence, start, end, window);
      feeds[this.#name(name)] = new Tensor('float32', mask, [1, 1, end - start, end]);
    }
    if (this.#manifest.slots) {
      feeds[this.#name(SLOT_POSITIONS)] = integers(sequence.positions, start, end);
      feeds[this.#name(SLOT_LAST_KEY)] = new Tensor('int32', Int32Array.of(end - 1), [1]);
      feeds[this.#name(SLOT_KEYS)] = new Tensor('int32', Int32Array.of(end), []);
    } else if (this.#manifest.inputs.attentionMask) {
      feeds[this.#manifest.inputs.attentionMask] = new Tensor('int64', new BigInt64Array(end).fill(1n), [1, end]);
    }
  }

  /** Adds the input tensors of a slot that no sequence uses in this run. */
  leaveEmpty(feeds: Feeds): void {
    Object.assign(feeds, this.#empty);
  }

  /**
   * Returns the inputs of an unused slot: one row of zeros without a past, because every slot needs at least one row.
   */
  #emptyFeeds(): Feeds {
    const feeds: Feeds = {
      [this.#name(SLOT_POSITIONS)]: new Tensor('int64', BigInt64Array.of(0n), [1, 1]),
      [this.#name(SLOT_LAST_KEY)]: new Tensor('int32', Int32Array.of(0), [1]),
      [this.#name(SLOT_KEYS)]: new Tensor('int32', Int32Array.of(1), []),
    };
    for (const { name } of this.#manifest.inputs.masks) {
      feeds[this.#name(name)] = new Tensor('float32', new Float32Array(1), [1, 1, 1, 1]);
    }
    for (const { past, heads, headSize } of this.#manifest.kv) {
      const tensor = new Tensor('float32', new Float32Array(heads * headSize), [1, heads, 1, headSize]);
      for (const name of past) feeds[this.#name(name)] = tensor;
    }
    return feeds;
  }

  #mask(index: number, sequence: Sequence, start: number, end: number, window: number | null): Float32Array {
    const size = (end - start) * end;
    if (isPlainCausal(sequence, end, window)) {
      if (this.#zeros.length < size) this.#zeros = new Float32Array(Math.ceil(size * 1.25));
      return this.#zeros.subarray(0, size);
    }
    const scratch = this.#masks[index];
    if (!scratch) throw new Error(`the model has no mask ${index}`);
    const mask = scratch.take(size);
    writeTreeMask(mask, sequence, start, end, window);
    return mask;
  }
}

/**
 * Writes the additive attention mask of the cells from `start` to before `length`, `[length - start, length]` row by
 * row. A token sees its ancestors and itself; with a sliding window, only the last `window` positions of these.
 */
function writeTreeMask(
  into: Float32Array,
  { trunkLength, parents, positions }: Sequence,
  start: number,
  length: number,
  window: number | null,
): void {
  for (let cell = start; cell < length; cell++) {
    const row = (cell - start) * length;
    const first = window === null ? 0 : at(positions, cell) - window + 1;
    let ancestor = cell;
    into.fill(HIDDEN, row, row + length);
    while (ancestor >= trunkLength) {
      if (at(positions, ancestor) >= first) into[row + ancestor] = 0;
      ancestor = at(parents, ancestor);
    }
    // The remaining ancestors are in the trunk, where the index of a cell is its position.
    if (ancestor >= 0) into.fill(0, row + Math.min(Math.max(0, first), ancestor + 1), row + ancestor + 1);
  }
}

/** Tells whether the first `length` cells need no mask beyond the attention operator's own causal one. */
function isPlainCausal(sequence: Sequence, length: number, window: number | null): boolean {
  return sequence.trunkLength >= length && (window === null || length <= window);
}
