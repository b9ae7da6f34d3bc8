import type { Forward, SequenceRun } from '../../runtime/engine/forward/forward.ts';
import { Random } from '../../runtime/engine/random.ts';

export const TOY_KV = { layers: [{ heads: 1, headSize: 2 }] };

/**
 * A model in a few lines: the logits after a token are random numbers seeded by all tokens it descends from. Its "KV"
 * is the running hash, written to the same buffers as a real one, so a wrong cell, a stale prefix or a leak changes the
 * answer.
 */
export class ToyForward implements Forward {
  readonly vocabSize: number;
  readonly slots: number;
  /** New tokens of each run so far, of all its sequences. */
  readonly runs: number[] = [];
  /** Sequences of each run so far. */
  readonly batches: number[] = [];
  /** Called before each run. */
  onRun: (batch: readonly SequenceRun[]) => void = () => {};

  constructor(vocabSize = 64, slots = 8) {
    this.vocabSize = vocabSize;
    this.slots = slots;
  }

  async run(batch: readonly SequenceRun[]): Promise<Float32Array> {
    if (batch.length > this.slots) throw new Error(`${batch.length} sequences in ${this.slots} slots`);
    if (new Set(batch.map(({ sequence }) => sequence)).size < batch.length)
      throw new Error('a sequence is in a run twice');
    this.onRun(batch);
    this.runs.push(batch.reduce((sum, { sequence, start }) => sum + sequence.length - start, 0));
    this.batches.push(batch.length);
    await Promise.resolve();
    const rows = batch.map((run) => this.#runOne(run));
    const logits = new Float32Array(rows.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const row of rows) {
      logits.set(row, at);
      at += row.length;
    }
    return logits;
  }

  #runOne({ sequence, start, rows }: SequenceRun): Float32Array {
    const kv = sequence.layers[0]!;
    for (let cell = start; cell < sequence.length; cell++) {
      const parent = sequence.parents[cell]!;
      const before = parent < 0 ? 1 : kv.key[2 * parent]! * 4096 + kv.value[2 * parent + 1]!;
      const hash = (before * 31 + sequence.tokens[cell]! * 7919 + sequence.positions[cell]!) % (1 << 24);
      kv.key[2 * cell] = Math.floor(hash / 4096);
      kv.value[2 * cell + 1] = hash % 4096;
    }
    const logits = new Float32Array(rows.length * this.vocabSize);
    for (const [index, row] of rows.entries()) {
      const random = new Random(kv.key[2 * row]! * 4096 + kv.value[2 * row + 1]!);
      for (let token = 0; token < this.vocabSize; token++)
        logits[index * this.vocabSize + token] = 4 * random.uniform();
    }
    return logits;
  }
}
