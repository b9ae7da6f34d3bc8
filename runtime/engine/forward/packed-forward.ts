import { type InferenceSession, type InferenceSessionHandler, type OnnxValue, Tensor } from 'onnxruntime-node';
import type { Manifest } from '../../compile/manifest.ts';
import { BATCH_ROWS, NOTHING, SEVERAL, SLOT_SIZES } from '../../onnx/rewrites/attention-slots.ts';
import { isEndOfResults } from '../../onnx/rewrites/end-results.ts';
import { type Forward, Scratch, type SequenceRun } from './forward.ts';
import { type Feeds, KvSlot, type Stretch } from './kv-slot.ts';
import { tokenFeeds } from './media-feeds.ts';
import { StateFeeds } from './state-feeds.ts';
import { gather, int64, LogitRows, positionTensor } from './tensors.ts';

/**
 * Runs the tokens of all branches packed into one sequence: each branch's positions continue from the prefix, and a
 * mask hides the branches from each other. The KV buffers are both past and present tensors, so nothing is copied.
 */
export class PackedForward implements Forward {
  readonly vocabSize: number;
  readonly slots: number;
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
    this.#batch = new PackedGraph(session, manifest);
    this.#alone = alone && aloneGraph ? new PackedGraph(alone, { ...facts, ...aloneGraph }) : this.#batch;
  }

  async run(batch: readonly SequenceRun[]): Promise<Float32Array> {
    const parts = batch.map(splitAtTrunk);
    if (parts.every(({ branches }) => branches === null)) return this.#run(parts.map(({ first }) => first));
    const first = new LogitRows((await this.#run(parts.map((part) => part.first))).slice(), this.vocabSize);
    const branches = new LogitRows(await this.#run(parts.flatMap((part) => part.branches ?? [])), this.vocabSize);
    const logits = new Float32Array(batch.reduce((sum, { rows }) => sum + rows.length, 0) * this.vocabSize);
    let at = 0;
    for (const part of parts) {
      for (const rows of [first.take(part.first.rows.length), branches.take(part.branches?.rows.length ?? 0)]) {
        logits.set(rows, at);
        at += rows.length;
      }
    }
    return logits;
  }

  #run(stretches: readonly Stretch[]): Promise<Float32Array> {
    return (stretches.length === 1 ? this.#alone : this.#batch).run(stretches);
  }
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
  readonly #session: InferenceSession;
  readonly #manifest: Manifest;
  readonly #slots: KvSlot[];
  readonly #logits = new Scratch((length) => new Float32Array(length));
  readonly #states: StateFeeds | undefined;

  constructor(session: InferenceSession, manifest: Manifest) {
    this.#session = session;
    this.#manifest = manifest;
    const { states, inputs } = manifest;
    this.#states = states && inputs.lanes && new StateFeeds(states, inputs.lanes);
    this.#slots = Array.from({ length: manifest.slots ?? 1 }, (_, slot) => new KvSlot(manifest, slot));
  }

  /**
   * Runs the given cells of several sequences together. Returns the requested rows of logits, sequence by sequence. The
   * next run overwrites the returned array.
   */
  async run(stretches: readonly Stretch[]): Promise<Float32Array> {
    const { inputs, logits, end, vocabSize } = this.#manifest;
    const feeds = tokenFeeds(this.#manifest, stretches);
    const fetches: Feeds = {};
    if (inputs.positions) feeds[inputs.positions] = positionTensor(inputs, stretches);
    this.#bindSlots(stretches, feeds, fetches);
    const count = stretches.reduce((sum, { start, end: last }) => sum + last - start, 0);
    const [only] = stretches;
    const states = only && this.#states?.prepare(only.sequence, only.start, only.end, only.keep);
    Object.assign(feeds, states?.feeds);
    Object.assign(fetches, states?.fetches);
    const rows = rowsOf(stretches);
    // If no row is requested, one is computed and dropped, because the MatMul of the output head accepts no empty
    // input.
    const read = rows.length > 0 ? rows : [count - 1];
    if (inputs.rows) feeds[inputs.rows] = int64(read);
    const height = inputs.rows ? read.length : count;
    const buffer = this.#logits.take(height * vocabSize);
    fetches[logits] = new Tensor('float32', buffer, [1, height, vocabSize]);
    await runDirectly(this.#session, feeds, end ? { [end]: null, ...fetches } : fetches).catch((error: unknown) => {
      if (!isEndOfResults(error)) throw error;
    });
    states?.store();
    return inputs.rows ? buffer.subarray(0, rows.length * vocabSize) : gather(buffer, rows, vocabSize);
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
    if (!several) {
      feeds[NOTHING] = new Tensor('float32', new Float32Array(0), [0]);
      return;
    }
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
