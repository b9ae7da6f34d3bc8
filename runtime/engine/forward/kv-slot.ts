import { Tensor } from 'onnxruntime-node';
import { at } from '../../../lib/at.ts';
import type { Manifest } from '../../compile/manifest.ts';
import { SLOT_KEYS, SLOT_LAST_KEY, SLOT_POSITIONS, slotName } from '../../onnx/rewrites/attention-slots.ts';
import { floatBuffer, type KvLayerBuffers, type Sequence } from '../cache/sequence.ts';
import { Scratch } from './forward.ts';
import type { MediaFeatures } from './media-feeds.ts';
import { integers } from './tensors.ts';

export type Feeds = Record<string, Tensor>;

/**
 * Describes the consecutive cells of a sequence that one run computes: from `start` to before `end`. The run ignores
 * the cells from `end` on.
 */
export interface Stretch {
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
export class KvSlot {
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

/** KV tensors of each sequence, keys and values layer by layer. Created once for a sequence's buffers. */
const tensors = new WeakMap<readonly KvLayerBuffers[], readonly Tensor[]>();

function kvTensors({ kv }: Manifest, { layers, capacity }: Sequence): readonly Tensor[] {
  const known = tensors.get(layers);
  if (known) return known;
  const made = kv.flatMap(({ heads, headSize }, index) => {
    const layer = layers[index];
    if (!layer) throw new Error(`the sequence has no layer ${index}`);
    return [layer.key, layer.value].map(
      (data) => new Tensor('float32', floatBuffer(data), [1, heads, capacity, headSize]),
    );
  });
  tensors.set(layers, made);
  return made;
}

/** Value added to the attention score of a cell that a token must not see; its weight becomes exactly 0. */
const HIDDEN = -1e9;

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
