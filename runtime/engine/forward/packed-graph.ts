import { type InferenceSession, Tensor } from 'onnxruntime-node';
import type { Manifest } from '../../compile/manifest.ts';
import { BATCH_ROWS, NOTHING, SEVERAL, SLOT_SIZES } from '../../onnx/rewrites/attention-slots.ts';
import { isEndOfResults } from '../../onnx/rewrites/end-results.ts';
import { Scratch } from './forward.ts';
import { type Feeds, KvSlot, type Stretch } from './kv-slot.ts';
import { tokenFeeds } from './media-feeds.ts';
import { runDirectly } from './run-directly.ts';
import { StateFeeds } from './state-feeds.ts';
import { gather, int64, positionTensor } from './tensors.ts';

/**
 * Runs a graph whose sequences may hold packed branches: one sequence, or as many as the graph has slots. The KV
 * buffers are both past and present tensors, so nothing is copied.
 */
export class PackedGraph {
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
