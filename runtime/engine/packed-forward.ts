import { type InferenceSession, Tensor } from 'onnxruntime-node';
import type { Manifest } from '../compile/manifest.ts';
import { isEndOfResults } from '../onnx/end-results.ts';
import { type Forward, Scratch } from './forward.ts';
import type { KvLayerBuffers, Sequence } from './sequence.ts';
import { StateFeeds } from './state-feeds.ts';
import { isPlainCausal, writeTreeMask } from './tree-mask.ts';

type Tensors = Record<string, Tensor>;

/**
 * Runs the tokens of all branches as one sequence: positions restart behind the prefix and a mask hides the branches from each
 * other. The KV buffers go in as past and out as present, the same memory, so nothing is copied.
 */
export class PackedForward implements Forward {
  readonly vocabSize: number;
  readonly #session: InferenceSession;
  readonly #manifest: Manifest;
  /** The KV tensors of a sequence, made once for its buffers. */
  readonly #kv = new WeakMap<readonly KvLayerBuffers[], { past: Tensors; present: Tensors }>();
  readonly #masks: Scratch<Float32Array<ArrayBuffer>>[];
  readonly #logits = new Scratch((length) => new Float32Array(length));
  readonly #states: StateFeeds | undefined;
  #zeros = new Float32Array(0);
  #ones = new BigInt64Array(0);

  constructor(session: InferenceSession, manifest: Manifest) {
    this.#session = session;
    this.#manifest = manifest;
    this.vocabSize = manifest.vocabSize;
    const { states, inputs } = manifest;
    this.#states = states && inputs.lanes && new StateFeeds(states, inputs.lanes);
    this.#masks = manifest.inputs.masks.map(() => new Scratch((length) => new Float32Array(length)));
  }

  async run(
    sequence: Sequence,
    start: number,
    rows: readonly number[],
    keep: readonly number[] = [],
  ): Promise<Float32Array> {
    const { length, trunkLength } = sequence;
    if (start > 0 || trunkLength === length) return this.#run(sequence, start, length, rows, keep);
    // On an empty past the operator ignores positions and counts by itself, which only the trunk can bear.
    const inTrunk = rows.filter((row) => row < trunkLength);
    const branching = sequence.parents.subarray(trunkLength, length).filter((cell) => cell >= 0 && cell < trunkLength);
    const wanted = new Set([...keep.filter((cell) => cell < trunkLength), ...branching]);
    const begun = await this.#run(sequence, 0, trunkLength, inTrunk, [...wanted]);
    const first = begun.slice(0, inTrunk.length * this.vocabSize);
    const others = keep.filter((cell) => cell >= trunkLength);
    const second = await this.#run(sequence, trunkLength, length, rows.slice(inTrunk.length), others);
    if (inTrunk.length === 0) return second;
    const both = new Float32Array(rows.length * this.vocabSize);
    both.set(first);
    both.set(second.subarray(0, both.length - first.length), first.length);
    return both;
  }

  /** Runs the cells from `start` to `length`, as if there were no more. */
  async #run(
    sequence: Sequence,
    start: number,
    length: number,
    rows: readonly number[],
    keep: readonly number[],
  ): Promise<Float32Array> {
    const { inputs, logits, end } = this.#manifest;
    const count = length - start;
    const { past, present } = this.#tensors(sequence);
    const states = this.#states?.prepare(sequence, start, length, keep);
    const feeds: Tensors = { ...past, ...states?.feeds, [inputs.tokens]: integers(sequence.tokens, start, length) };
    if (inputs.positions) feeds[inputs.positions] = integers(sequence.positions, start, length);
    if (inputs.attentionMask) feeds[inputs.attentionMask] = new Tensor('int64', this.#onesOf(length), [1, length]);
    for (const [index, { name, window }] of inputs.masks.entries()) {
      feeds[name] = new Tensor('float32', this.#mask(index, sequence, start, length, window), [1, 1, count, length]);
    }
    // Without rows to read, one is computed and thrown away: the head takes no empty product.
    const read = rows.length > 0 ? rows : [length - 1];
    if (inputs.rows) {
      feeds[inputs.rows] = new Tensor(
        'int64',
        BigInt64Array.from(read, (row) => BigInt(row - start)),
        [read.length],
      );
    }
    const height = inputs.rows ? read.length : count;
    const buffer = this.#logits.take(height * this.vocabSize);
    const fetches = {
      ...present,
      ...states?.fetches,
      [logits]: new Tensor('float32', buffer, [1, height, this.vocabSize]),
    };
    await this.#session.run(feeds, end ? { [end]: null, ...fetches } : fetches).catch((error: unknown) => {
      if (!isEndOfResults(error)) throw error;
    });
    states?.store();
    return inputs.rows
      ? buffer
      : gather(
          buffer,
          rows.map((row) => row - start),
          this.vocabSize,
        );
  }

  #tensors(sequence: Sequence): { past: Tensors; present: Tensors } {
    const known = this.#kv.get(sequence.layers);
    if (known) return known;
    const past: Tensors = {};
    const present: Tensors = {};
    for (const [index, layer] of this.#manifest.kv.entries()) {
      const dims = [1, layer.heads, sequence.capacity, layer.headSize];
      for (const [part, data] of [sequence.layers[index]!.key, sequence.layers[index]!.value].entries()) {
        const tensor = new Tensor('float32', data, dims);
        past[layer.past[part]!] = tensor;
        present[layer.present[part]!] = tensor;
      }
    }
    this.#kv.set(sequence.layers, { past, present });
    return { past, present };
  }

  #mask(index: number, sequence: Sequence, start: number, length: number, window: number | null): Float32Array {
    const size = (length - start) * length;
    if (isPlainCausal(sequence, length, window)) {
      if (this.#zeros.length < size) this.#zeros = new Float32Array(Math.ceil(size * 1.25));
      return this.#zeros.subarray(0, size);
    }
    const mask = this.#masks[index]!.take(size);
    writeTreeMask(mask, sequence, start, length, window);
    return mask;
  }

  #onesOf(length: number): BigInt64Array {
    if (this.#ones.length < length) this.#ones = new BigInt64Array(Math.ceil(length * 1.25)).fill(1n);
    return this.#ones.subarray(0, length);
  }
}

/** A stretch of a cell table as a `[1, n]` tensor. */
export function integers(values: Int32Array, start: number, end: number): Tensor {
  const big = new BigInt64Array(end - start);
  for (let index = start; index < end; index++) big[index - start] = BigInt(values[index]!);
  return new Tensor('int64', big, [1, end - start]);
}

/** Picks rows out of the logits of all positions. */
export function gather(logits: Float32Array, rows: readonly number[], vocabSize: number): Float32Array {
  const picked = new Float32Array(rows.length * vocabSize);
  for (const [index, row] of rows.entries()) {
    picked.set(logits.subarray(row * vocabSize, (row + 1) * vocabSize), index * vocabSize);
  }
  return picked;
}
