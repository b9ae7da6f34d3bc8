import { type InferenceSession, Tensor } from 'onnxruntime-node';
import type { Manifest } from '../compile/manifest.ts';
import { type Forward, onlyRun, type SequenceRun } from './forward.ts';

import type { Sequence } from './sequence.ts';
import { gather, integers } from './tensors.ts';

/**
 * For graphs that take the past as one line and give a new one back: every stretch of cells that follow each other is run by
 * itself, with the KV of what it descends from gathered in front and its own KV copied back.
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
    const { sequence, start, rows } = onlyRun(batch);
    const logits = new Float32Array(rows.length * this.vocabSize);
    for (const [first, end] of stretches(sequence, start)) {
      const wanted = rows.flatMap((row, index) => (row >= first && row < end ? [{ row, index }] : []));
      const local = wanted.map(({ row }) => row - first);
      const found = await this.#runStretch(sequence, first, end, local);
      for (const [at, { index }] of wanted.entries()) {
        logits.set(found.subarray(at * this.vocabSize, (at + 1) * this.vocabSize), index * this.vocabSize);
      }
    }
    return logits;
  }

  async #runStretch(sequence: Sequence, first: number, end: number, rows: number[]): Promise<Float32Array> {
    const { inputs, kv, logits } = this.#manifest;
    const ancestors = ancestorsOf(sequence, sequence.parents[first]!);
    const past = ancestors.length;
    const count = end - first;
    const feeds: Record<string, Tensor> = { [inputs.tokens]: integers(sequence.tokens, first, end) };
    if (inputs.positions) feeds[inputs.positions] = integers(sequence.positions, first, end);
    if (inputs.attentionMask) {
      const ones = new BigInt64Array(past + count).fill(1n);
      feeds[inputs.attentionMask] = new Tensor('int64', ones, [1, past + count]);
    }
    if (inputs.rows) {
      const read = rows.length > 0 ? rows : [count - 1];
      feeds[inputs.rows] = new Tensor('int64', BigInt64Array.from(read, BigInt), [read.length]);
    }
    for (const [index, layer] of kv.entries()) {
      const { key, value } = sequence.layers[index]!;
      for (const [part, data] of [key, value].entries()) {
        const gathered = gatherColumns(data, sequence.capacity, layer, ancestors);
        feeds[layer.past[part]!] = new Tensor('float32', gathered, [1, layer.heads, past, layer.headSize]);
      }
    }
    const results = await this.#session.run(feeds);
    for (const [index, layer] of kv.entries()) {
      const { key, value } = sequence.layers[index]!;
      for (const [part, into] of [key, value].entries()) {
        const present = results[layer.present[part]!]!.data as Float32Array;
        for (let head = 0; head < layer.heads; head++) {
          const from = (head * (past + count) + past) * layer.headSize;
          const to = (head * sequence.capacity + first) * layer.headSize;
          into.set(present.subarray(from, from + count * layer.headSize), to);
        }
      }
    }
    const all = results[logits]!.data as Float32Array;
    return inputs.rows ? all : gather(all, rows, this.vocabSize);
  }
}

/** The cells from `start` on, cut where one does not follow the one before it. */
function stretches(sequence: Sequence, start: number): [first: number, end: number][] {
  const found: [number, number][] = [];
  for (let cell = start; cell < sequence.length; cell++) {
    const last = found.at(-1);
    if (last && sequence.parents[cell] === cell - 1) last[1] = cell + 1;
    else found.push([cell, cell + 1]);
  }
  return found;
}

/** The cells from the first token to `cell`. */
function ancestorsOf(sequence: Sequence, cell: number): number[] {
  const line: number[] = [];
  for (let at = cell; at >= 0; at = sequence.parents[at]!) line.push(at);
  return line.reverse();
}

function gatherColumns(
  data: Float32Array,
  capacity: number,
  { heads, headSize }: { heads: number; headSize: number },
  cells: readonly number[],
): Float32Array {
  const gathered = new Float32Array(heads * cells.length * headSize);
  for (let head = 0; head < heads; head++) {
    let at = 0;
    while (at < cells.length) {
      let end = at + 1;
      while (end < cells.length && cells[end] === cells[end - 1]! + 1) end++;
      const from = (head * capacity + cells[at]!) * headSize;
      gathered.set(data.subarray(from, from + (end - at) * headSize), (head * cells.length + at) * headSize);
      at = end;
    }
  }
  return gathered;
}
