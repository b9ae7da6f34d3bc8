import type { Forward } from '../../runtime/engine/forward.ts';
import { Random } from '../../runtime/engine/random.ts';
import type { Sequence } from '../../runtime/engine/sequence.ts';

export const TOY_KV = { layers: [{ heads: 1, headSize: 2 }] };

/**
 * A model in a few lines: the logits behind a token are random numbers seeded by all tokens it descends from. Its "KV" is the
 * running hash, written to the same buffers as a real one, so a wrong cell, a stale prefix or a leak changes the answer.
 */
export class ToyForward implements Forward {
  readonly vocabSize: number;
  /** New tokens of each run so far. */
  readonly runs: number[] = [];
  /** Called before each run. */
  onRun: () => void = () => {};

  constructor(vocabSize = 64) {
    this.vocabSize = vocabSize;
  }

  async run(sequence: Sequence, start: number, rows: readonly number[]): Promise<Float32Array> {
    this.onRun();
    this.runs.push(sequence.length - start);
    await Promise.resolve();
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
