import type { InferenceSession } from 'onnxruntime-node';
import type { Manifest } from '../../compile/manifest.ts';
import type { Forward, SequenceRun } from './forward.ts';
import type { Stretch } from './kv-slot.ts';
import { PackedGraph } from './packed-graph.ts';
import { LogitRows } from './tensors.ts';

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
