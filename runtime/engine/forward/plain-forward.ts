import { type InferenceSession, Tensor } from 'onnxruntime-node';
import { at } from '../../../lib/at.ts';
import type { Manifest } from '../../compile/manifest.ts';
import { floatBuffer } from '../cache/kv-shape.ts';
import type { Sequence } from '../cache/sequence.ts';
import { type Forward, floatsOf, onlyRun, type SequenceRun } from './forward.ts';
import { type Cells, tokenFeeds } from './media-feeds.ts';
import { gather, positionTensor } from './tensors.ts';

/**
 * Runs graphs that have no mask for branches and return new KV tensors. Cells that follow each other directly form one
 * run: the KV of their ancestors is gathered as its past, and their own KV is copied back into the sequence.
 */
export class PlainForward implements Forward {
  readonly vocabSize: number;
  readonly slots = 1;
  readonly #session: InferenceSession;
  readonly #manifest: Manifest;

  constructor(session: InferenceSession, manifest: Manifest) {
    this.#session = session;
    this.#manifest = manifest;
    this.vocabSize = manifest.vocabSize;
  }

  async run(batch: readonly SequenceRun[]): Promise<Float32Array> {
    const { sequence, start, rows, media } = onlyRun(batch);
    const logits = new Float32Array(rows.length * this.vocabSize);
    for (const [first, end] of stretches(sequence, start)) {
      const needed = rows.flatMap((row, index) => (row >= first && row < end ? [{ row, index }] : []));
      const local = needed.map(({ row }) => row - first);
      const found = await this.#runStretch({ sequence, start: first, end, media }, local);
      for (const [row, { index }] of needed.entries()) {
        logits.set(found.subarray(row * this.vocabSize, (row + 1) * this.vocabSize), index * this.vocabSize);
      }
    }
    return logits;
  }

  async #runStretch(cells: Cells, rows: number[]): Promise<Float32Array> {
    const { sequence, start: first, end } = cells;
    const { inputs, kv, logits } = this.#manifest;
    const ancestors = ancestorsOf(sequence, at(sequence.parents, first));
    const past = ancestors.length;
    const count = end - first;
    const feeds = tokenFeeds(this.#manifest, [cells]);
    if (inputs.positions) feeds[inputs.positions] = positionTensor(inputs, [cells]);
    if (inputs.attentionMask) {
      const ones = new BigInt64Array(past + count).fill(1n);
      feeds[inputs.attentionMask] = new Tensor('int64', ones, [1, past + count]);
    }
    if (inputs.rows) {
      const read = rows.length > 0 ? rows : [count - 1];
      feeds[inputs.rows] = new Tensor('int64', BigInt64Array.from(read, BigInt), [read.length]);
    }
    for (const [index, layer] of kv.entries()) {
      const { key, value } = at(sequence.layers, index);
      for (const [name, data] of [
        [layer.past[0], key],
        [layer.past[1], value],
      ] as const) {
        const gathered = gatherCells(floatBuffer(data), sequence.capacity, layer, ancestors);
        feeds[name] = new Tensor('float32', gathered, [1, layer.heads, past, layer.headSize]);
      }
    }
    const results = await this.#session.run(feeds);
    for (const [index, layer] of kv.entries()) {
      const { key, value } = at(sequence.layers, index);
      for (const [name, into] of [
        [layer.present[0], key],
        [layer.present[1], value],
      ] as const) {
        const present = floatsOf(results, name);
        for (let head = 0; head < layer.heads; head++) {
          const from = (head * (past + count) + past) * layer.headSize;
          const to = (head * sequence.capacity + first) * layer.headSize;
          into.set(present.subarray(from, from + count * layer.headSize), to);
        }
      }
    }
    const all = floatsOf(results, logits);
    return inputs.rows ? all : gather(all, rows, this.vocabSize);
  }
}

/** Splits the cells from `start` on into ranges in which each cell follows the one before it. */
function stretches(sequence: Sequence, start: number): [first: number, end: number][] {
  const found: [number, number][] = [];
  for (let cell = start; cell < sequence.length; cell++) {
    const last = found.at(-1);
    if (last && sequence.parents[cell] === cell - 1) last[1] = cell + 1;
    else found.push([cell, cell + 1]);
  }
  return found;
}

/** Returns `cell` and all its ancestors, from the first token on. */
function ancestorsOf(sequence: Sequence, cell: number): number[] {
  const line: number[] = [];
  for (let each = cell; each >= 0; each = at(sequence.parents, each)) line.push(each);
  return line.reverse();
}

/** Copies the KV of some cells into a new buffer, `[heads, cells, headSize]`. */
function gatherCells(
  data: Float32Array,
  capacity: number,
  { heads, headSize }: { heads: number; headSize: number },
  cells: readonly number[],
): Float32Array {
  const gathered = new Float32Array(heads * cells.length * headSize);
  for (let head = 0; head < heads; head++) {
    let first = 0;
    while (first < cells.length) {
      let end = first + 1;
      while (end < cells.length && cells[end] === at(cells, end - 1) + 1) end++;
      const from = (head * capacity + at(cells, first)) * headSize;
      gathered.set(data.subarray(from, from + (end - first) * headSize), (head * cells.length + first) * headSize);
      first = end;
    }
  }
  return gathered;
}
