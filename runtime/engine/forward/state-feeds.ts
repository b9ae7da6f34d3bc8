import { Tensor } from 'onnxruntime-node';
import { at } from '../../../lib/at.ts';
import type { Manifest } from '../../compile/manifest.ts';
import type { Sequence } from '../cache/sequence.ts';
import { gatherSnapshotRows, type Snapshot, type StateRows } from '../cache/snapshots.ts';
import type { Cells } from './media-feeds.ts';

type Tensors = Record<string, Tensor>;

/** Holds the inputs and outputs that recurrent layers add to a run. */
export interface StateRun {
  feeds: Tensors;
  fetches: Tensors;
  /** Stores snapshots of the new states of the `keep` cells in the sequence. Must be called after the run. */
  store(): void;
}

/** Feeds the states of recurrent layers to a run, and stores the new ones as snapshots. */
export class StateFeeds {
  readonly #states: NonNullable<Manifest['states']>;
  readonly #inputs: NonNullable<Manifest['inputs']['lanes']>;
  readonly #sizes: number[];

  constructor(states: NonNullable<Manifest['states']>, inputs: NonNullable<Manifest['inputs']['lanes']>) {
    this.#states = states;
    this.#inputs = inputs;
    this.#sizes = states.map(({ dims }) => floats(dims));
  }

  /**
   * Returns the inputs and outputs for a run of some cells, which stores snapshots of its cells `keep`. Throws unless
   * the sequence has a snapshot of every earlier cell that one of the new cells follows.
   *
   * @param rows number of rows of the run; those after the rows of these cells mean nothing
   * @param leastSteps least number of steps of each lane; those after its cells mean nothing
   */
  prepare(
    { sequence, start, end, keep }: Cells & { keep: readonly number[] },
    rows: number,
    leastSteps: number,
  ): StateRun {
    const lanes = layOutLanes(sequence, start, Math.min(end, sequence.length - sequence.padding), keep);
    const last = at(lanes.places, lanes.places.length - 1);
    while (lanes.places.length < rows) lanes.places.push(last);
    const given = this.#initialStates(sequence, lanes.roots);
    // The operators accept no empty result: if no cell is kept, the state of the first lane is computed and dropped.
    const kept = keep.length > 0 ? lanes.kept : [0];
    const out: StateRows = {
      rows: kept.length,
      tensors: this.#sizes.map((size) => new Float32Array(kept.length * size)),
    };
    const feeds = this.#laneFeeds(lanes, kept, leastSteps);
    const fetches: Tensors = {};
    for (const [index, { past, present, dims }] of this.#states.entries()) {
      feeds[past] = new Tensor('float32', at(given.tensors, index), [given.rows, ...dims]);
      fetches[present] = new Tensor('float32', at(out.tensors, index), [out.rows, ...dims]);
    }
    const store = () => {
      for (const [row, cell] of keep.entries())
        sequence.snapshots.set(cell, this.#owned({ states: out, row }, cell, sequence));
    };
    return { feeds, fetches, store };
  }

  /**
   * Returns the states that the lanes begin with: the tensors of an earlier run unchanged if they have the same rows,
   * otherwise gathered in new ones.
   */
  #initialStates(sequence: Sequence, roots: readonly number[]): StateRows {
    const snapshots = roots.map((cell) => {
      if (cell < 0) return null;
      const snapshot = sequence.snapshots.at(cell);
      if (!snapshot) throw new Error(`cell ${cell} has no snapshot`);
      return snapshot;
    });
    const first = snapshots[0]?.states;
    const unchanged =
      first?.rows === roots.length && snapshots.every((one, row) => one?.states === first && one.row === row);
    return unchanged ? first : gatherSnapshotRows(this.#sizes, snapshots);
  }

  /**
   * Copies a snapshot of the prefix, which stays cached for long and would otherwise keep the states of all other lanes
   * of its run in memory. Returns other snapshots unchanged.
   */
  #owned(snapshot: Snapshot, cell: number, { trunkLength }: Sequence): Snapshot {
    if (cell >= trunkLength || snapshot.states.rows === 1) return snapshot;
    return { states: gatherSnapshotRows(this.#sizes, [snapshot]), row: 0 };
  }

  #laneFeeds({ lanes, places }: Lanes, kept: readonly number[], leastSteps: number): Tensors {
    const { roots, cells, live, places: placesInput, kept: keptLanes, windows } = this.#inputs;
    const steps = Math.max(leastSteps, ...lanes.map(({ rows }) => rows.length));
    const rows = new BigInt64Array(lanes.length * steps);
    const alive = new Float32Array(lanes.length * steps);
    for (const [lane, { rows: own }] of lanes.entries()) {
      for (const [step, row] of own.entries()) {
        rows[lane * steps + step] = BigInt(row);
        alive[lane * steps + step] = 1;
      }
    }
    const feeds: Tensors = {
      [roots]: integers(lanes.map(({ root }) => root)),
      [cells]: new Tensor('int64', rows, [lanes.length, steps]),
      [live]: new Tensor('float32', alive, [lanes.length, steps, 1]),
      [placesInput]: integers(places.map(({ lane, step }) => lane * steps + step)),
      [keptLanes]: integers(kept),
    };
    for (const { name, width } of windows) {
      const last = kept.flatMap((lane) =>
        Array.from({ length: width }, (_, step) => at(lanes, lane).rows.length + step),
      );
      feeds[name] = integers(last, [kept.length, 1, width]);
    }
    return feeds;
  }
}

function integers(values: readonly number[], dims: readonly number[] = [values.length]): Tensor {
  return new Tensor('int64', BigInt64Array.from(values, BigInt), dims);
}

/** Returns the number of floats of a state with these dimensions. */
export function floats(dims: readonly number[]): number {
  return dims.reduce((product, dim) => product * dim, 1);
}

/**
 * Describes the new cells of a run as lanes, for recurrent layers (`onnx/rewrites/pack-states.ts`). A lane is one path
 * of cells that follow each other; a recurrent layer computes each lane as a sequence of its own.
 */
interface Lanes {
  /**
   * Cells before the run whose states lanes begin with, without duplicates; -1 stands for the state before the first
   * token.
   */
  roots: number[];
  /** Lanes, each with its index in `roots` and its cells in order, as row numbers of the run. */
  lanes: { root: number; rows: number[] }[];
  /** For each row of the run, a lane that contains it and its index in that lane. */
  places: { lane: number; step: number }[];
  /** For each cell of `keep`, the index of the lane that ends at it. */
  kept: number[];
}

/**
 * Arranges the new cells, from `start` to before `length`, in lanes: one that ends at each cell without a new cell
 * after it, and one that ends at each cell of `keep`. A cell with several followers is in a lane for each of them; its
 * states are equal in all.
 */
export function layOutLanes(sequence: Sequence, start: number, length: number, keep: readonly number[]): Lanes {
  const { parents } = sequence;
  const followed = new Set<number>();
  for (let cell = start; cell < length; cell++) followed.add(at(parents, cell));
  const ends = new Set(keep);
  for (let cell = start; cell < length; cell++) if (!followed.has(cell)) ends.add(cell);

  const roots: number[] = [];
  const places: Lanes['places'] = [];
  const ordered = [...ends];
  const lanes = ordered.map((end, lane) => {
    const rows: number[] = [];
    let cell = end;
    for (; cell >= start; cell = at(parents, cell)) rows.push(cell - start);
    rows.reverse();
    for (const [step, row] of rows.entries()) places[row] ??= { lane, step };
    if (!roots.includes(cell)) roots.push(cell);
    return { root: roots.indexOf(cell), rows };
  });
  return { roots, lanes, places, kept: keep.map((cell) => ordered.indexOf(cell)) };
}
