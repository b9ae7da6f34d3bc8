import { Tensor } from 'onnxruntime-node';
import { at } from '../../../lib/at.ts';
import type { Manifest } from '../../compile/manifest.ts';
import { slotName } from '../../onnx/rewrites/attention-slots.ts';
import {
  APART_CELLS,
  APART_GATHERED,
  APART_POSITIONS,
  APART_SPREAD,
  apartName,
  type BranchMask,
  JOB_ROWS,
  JOB_SIZES,
  SEVERAL_JOBS,
} from '../../onnx/rewrites/two-part-attention.ts';
import type { BranchCells } from '../cache/branch-cells.ts';
import { floatBuffer } from '../cache/kv-shape.ts';
import { type RowBlock, rowsMissing, Scratch } from './forward.ts';
import type { Cells } from './media-feeds.ts';
import { HIDDEN, int64, kvTensors } from './tensors.ts';

/** Holds the inputs and outputs for a run of branches, and `store`, which keeps the new keys and values after it. */
export interface BoundBranches {
  feeds: Record<string, Tensor>;
  fetches: Record<string, Tensor>;
  store(): void;
}

/** Describes the branches of one job in a run: those from the place `from` to before `to`. */
interface JobBranches extends Cells {
  branches: BranchCells;
  from: number;
  to: number;
  /** Place of the first of them in the tensors of the run. */
  first: number;
}

/** Describes a row of a run: a cell of a branch, and the place of the branch in the tensors of the run. */
interface Row {
  job: JobBranches;
  cell: number;
  place: number;
}

/**
 * Prepares runs of branches that are apart from their prefix (`onnx/rewrites/two-part-attention.ts`), of one job or of
 * several. Only the branches between a job's first and last one with new cells take part. The KV of one job is read and
 * written in place; that of several is copied together, and the new keys and values are copied back.
 */
export class BranchFeeds {
  readonly #manifest: Manifest;
  /** Masks of the branches' own cells, and the memory that each is written to. */
  readonly #masks: readonly (BranchMask & { scratch: Scratch<Float32Array<ArrayBuffer>> })[];
  /** True if each key head of a layer has a single query head. */
  readonly oneQueryEach: boolean;
  /** Keys and values of several jobs, layer by layer. */
  readonly #joint: Scratch<Float32Array<ArrayBuffer>>[];

  constructor(manifest: Manifest, masks: readonly BranchMask[]) {
    this.#manifest = manifest;
    const scratch = () => new Scratch((length) => new Float32Array(length));
    this.#masks = masks.map((mask) => ({ ...mask, scratch: scratch() }));
    this.oneQueryEach = masks.some(({ group }) => group === 1);
    this.#joint = manifest.kv.flatMap(() => [scratch(), scratch()]);
  }

  /**
   * Returns the cells of a run, with the last one as often as rows are missing (`rowsMissing`). One row alone is too
   * few anyway where each key head has a single query head.
   */
  padded(stretches: readonly Cells[], block: RowBlock): readonly Cells[] {
    const count = stretches.reduce((sum, { start, end }) => sum + end - start, 0);
    const missing = rowsMissing(count, block) || Number(count === 1 && this.oneQueryEach);
    const last = at(stretches, stretches.length - 1);
    return [...stretches, ...Array<Cells>(missing).fill({ ...last, start: last.end - 1 })];
  }

  /** Binds the new cells of each job. `padding` is how many times more the last row of the run is there. */
  prepare(stretches: readonly Cells[], padding: number): BoundBranches {
    const jobs = jobsOf(stretches);
    const rows = jobs.flatMap((job) =>
      Array.from({ length: job.end - job.start }, (_, index): Row => {
        const cell = job.start + index;
        return { job, cell, place: job.first + job.branches.placeOf(cell) - job.from };
      }),
    );
    rows.push(...Array<Row>(padding).fill(at(rows, rows.length - 1)));
    const bound: BoundBranches = { feeds: this.#rowFeeds(jobs, rows), fetches: {}, store: () => {} };
    for (const [slot, { sequence }] of jobs.entries()) {
      const prefix = kvTensors(this.#manifest, sequence);
      for (const [layer, { past }] of this.#manifest.kv.entries())
        for (const part of [0, 1]) bound.feeds[slotName(slot, at(past, part))] = at(prefix, 2 * layer + part);
    }
    for (const { name, window } of this.#manifest.inputs.masks)
      if (window !== null)
        for (const [slot, job] of jobs.entries()) {
          const own = rows.filter((row) => row.job === job);
          bound.feeds[slotName(slot, name)] = prefixMask(job, own, window);
        }
    if (jobs.length > 1) this.#bindSizes(jobs, padding, bound);
    this.#bindKv(jobs, rows, bound);
    return bound;
  }

  /** Returns the inputs that say which row belongs where, and which cells it sees. */
  #rowFeeds(jobs: readonly JobBranches[], rows: readonly Row[]): Record<string, Tensor> {
    const [count, length] = [branchesOf(jobs), lengthOf(jobs)];
    const used = new Int32Array(count);
    const within = rows.map(({ place }) => {
      used[place] = at(used, place) + 1;
      return at(used, place) - 1;
    });
    // Two rows at least, because one row alone is multiplied by another kernel.
    const height = Math.max(...used, this.oneQueryEach ? 2 : 1);
    const gathered = rows.map(({ place }, row) => place * height + at(within, row));
    const spread = new BigInt64Array(count * height);
    const cells = new BigInt64Array(rows.length * 3);
    const masks = this.#masks.map(({ name, window, group, scratch }) => {
      const mask = scratch.take(spread.length * group * length);
      mask.fill(HIDDEN);
      for (let first = 0; first < mask.length; first += length) mask[first] = 0;
      for (const [
        row,
        {
          job: { branches, sequence },
          cell,
        },
      ] of rows.entries()) {
        const { parents, positions } = sequence;
        const line = at(gathered, row) * group * length;
        const first = window === null ? 0 : at(positions, cell) - window + 1;
        for (let seen = cell; seen >= branches.prefix && at(positions, seen) >= first; seen = at(parents, seen))
          mask[line + branches.indexOf(seen)] = 0;
        for (let member = 1; member < group; member++) mask.copyWithin(line + member * length, line, line + length);
      }
      return [name, new Tensor('float32', mask, [count, 1, height * group, length])];
    });
    for (const [row, { job, cell, place }] of rows.entries()) {
      spread[at(gathered, row)] = BigInt(row);
      cells.set([BigInt(place), 0n, BigInt(job.branches.indexOf(cell))], 3 * row);
    }
    const positions = BigInt64Array.from(rows, ({ job, cell }) => BigInt(at(job.sequence.positions, cell)));
    return {
      [SEVERAL_JOBS]: new Tensor('bool', [jobs.length > 1], [1]),
      [APART_POSITIONS]: new Tensor('int64', positions, [1, rows.length]),
      [APART_CELLS]: new Tensor('int64', cells, [rows.length, 1, 3]),
      [APART_SPREAD]: new Tensor('int64', spread, [count, height]),
      [APART_GATHERED]: int64(gathered),
      ...Object.fromEntries(masks),
    };
  }

  /** Binds the numbers of rows of several jobs. Slots without a job get the rows of padding. */
  #bindSizes(jobs: readonly JobBranches[], padding: number, { feeds }: BoundBranches): void {
    const sizes = jobs.map(({ start, end }) => end - start);
    sizes.push((sizes.pop() ?? 0) + padding);
    const { slots = 1 } = this.#manifest;
    const empty = slots - jobs.length;
    feeds[JOB_SIZES] = int64([...sizes, ...Array<number>(empty).fill(1), jobs.length]);
    feeds[JOB_ROWS] = int64([sizes.reduce((sum, size) => sum + size, 0)]);
  }

  #bindKv(jobs: readonly JobBranches[], rows: readonly Row[], bound: BoundBranches): void {
    const [only] = jobs;
    const [count, length] = [branchesOf(jobs), lengthOf(jobs)];
    for (const [layer, { past, present, heads, headSize }] of this.#manifest.kv.entries()) {
      const dims = [count, heads, length, headSize + 1];
      const size = heads * length * (headSize + 1);
      for (const [index, part] of (['key', 'value'] as const).entries()) {
        const own = ({ branches }: JobBranches) => floatBuffer(at(branches.layers, layer)[part]);
        const bind = (data: Float32Array) => {
          const tensor = new Tensor('float32', data, dims);
          bound.feeds[apartName(at(past, index))] = tensor;
          bound.fetches[apartName(at(present, index))] = tensor;
        };
        if (only && jobs.length === 1) {
          bind(own(only).subarray(only.from * size, only.to * size));
          continue;
        }
        const joint = at(this.#joint, 2 * layer + index).take(count * size);
        for (const job of jobs) copyTogether(own(job), job, joint, { heads, length, width: headSize + 1 });
        bind(joint);
      }
    }
    if (jobs.length > 1) bound.store = () => this.#copyBack(rows, count, length);
  }

  /** Copies new keys and values of several jobs to the branches that they belong to. */
  #copyBack(rows: readonly Row[], count: number, length: number): void {
    for (const [index, scratch] of this.#joint.entries()) {
      const { heads, headSize } = at(this.#manifest.kv, index >> 1);
      const width = headSize + 1;
      const joint = scratch.take(count * heads * length * width);
      for (const { job, cell, place } of rows) {
        const { key, value } = at(job.branches.layers, index >> 1);
        const into = index % 2 === 0 ? key : value;
        const offset = job.branches.indexOf(cell) * width;
        for (let head = 0; head < heads; head++) {
          const start = (place * heads + head) * length * width + offset;
          const target = (job.branches.placeOf(cell) * heads + head) * job.branches.length * width + offset;
          into.set(joint.subarray(start, start + width), target);
        }
      }
    }
  }
}

/** Copies the KV of a job's branches in a layer to their place among those of several jobs, `length` cells each. */
function copyTogether(
  from: Float32Array,
  { branches, from: begin, to, first }: JobBranches,
  joint: Float32Array,
  { heads, length, width }: { heads: number; length: number; width: number },
): void {
  const ownSize = branches.length * width;
  for (let head = 0; head < (to - begin) * heads; head++) {
    const start = (begin * heads + head) * ownSize;
    joint.set(from.subarray(start, start + ownSize), (first * heads + head) * length * width);
  }
}

/** Returns the additive mask that hides the cells of a job's prefix that are outside the window of each row. */
function prefixMask({ branches, sequence }: JobBranches, rows: readonly Row[], window: number): Tensor {
  const { prefix } = branches;
  const mask = new Float32Array(rows.length * prefix);
  for (const [row, { cell }] of rows.entries()) {
    // The index of a cell of the prefix is its position.
    const hidden = Math.min(prefix, Math.max(0, at(sequence.positions, cell) - window + 1));
    mask.fill(HIDDEN, row * prefix, row * prefix + hidden);
  }
  return new Tensor('float32', mask, [1, 1, rows.length, prefix]);
}

/** Returns the branches of each job in a run. Throws if a sequence has none. */
function jobsOf(stretches: readonly Cells[]): JobBranches[] {
  let first = 0;
  return stretches.map((stretch) => {
    const { branches } = stretch.sequence;
    if (!branches) throw new Error('a sequence has no branches');
    const places = Array.from({ length: stretch.end - stretch.start }, (_, row) =>
      branches.placeOf(stretch.start + row),
    );
    const job = { ...stretch, branches, from: Math.min(...places), to: Math.max(...places) + 1, first };
    first += job.to - job.from;
    return job;
  });
}

/** Returns the number of branches of all jobs in a run. */
function branchesOf(jobs: readonly JobBranches[]): number {
  return jobs.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** Returns the number of cells of each branch in a run. */
function lengthOf(jobs: readonly JobBranches[]): number {
  return Math.max(...jobs.map(({ branches }) => branches.length));
}
