import { at } from '../../../lib/at.ts';
import type { KvLayerBuffers, KvShape } from './kv-shape.ts';

/** Numbers of cells of a branch are multiples of this (`twoPartAttention`). */
const BLOCK = 64;

/**
 * Holds the KV of the branches of a job apart from the KV of their prefix: `[branches, heads, length, headSize + 1]`
 * for each layer. The cells of a branch begin at index 1 whatever runs beside it, so its answer does not depend on it.
 * Cell 0 stands for the prefix (`onnx/rewrites/two-part-attention.ts`).
 */
export class BranchCells {
  readonly #shape: KvShape;
  /** Number of cells of the prefix, which come before those of the branches in the sequence. */
  readonly prefix: number;
  layers: readonly KvLayerBuffers[];
  /** Number of cells of each branch that the buffers have room for. */
  length: number;
  /** Branch of each cell after the prefix, in the order in which the branches began. */
  #branchOf: number[] = [];
  #indexOf: number[] = [];
  /** Place of each branch in the buffers. */
  #places: number[] = [];
  /** Number of branches that the buffers have room for. */
  #room: number;
  /** Place of the next branch that begins. */
  #free = 0;

  /**
   * @param branches number of branches
   * @param length number of cells of the longest branch
   */
  constructor(shape: KvShape, prefix: number, branches: number, length: number) {
    this.#shape = shape;
    this.prefix = prefix;
    this.length = cellsFor(length);
    this.#room = branches;
    this.layers = allocate(shape, branches, this.length);
  }

  /** Returns the number of bytes of the buffers of so many branches with at most `length` cells each. */
  static bytes({ layers }: KvShape, branches: number, length: number): number {
    const cell = layers.reduce((sum, { heads, headSize }) => sum + 2 * heads * (headSize + 1), 0);
    return branches * cellsFor(length) * cell * Float32Array.BYTES_PER_ELEMENT;
  }

  get bytes(): number {
    return BranchCells.bytes(this.#shape, this.#room, this.length - 1);
  }

  /** Records the next cell of the sequence: of a new branch if its parent is in the prefix, else of the parent's. */
  append(parent: number, index: number): void {
    if (parent < this.prefix) {
      if (this.#free === this.#room) throw new Error('more branches than there is room for');
      this.#branchOf.push(this.#places.push(this.#free++) - 1);
    } else this.#branchOf.push(at(this.#branchOf, parent - this.prefix));
    this.#indexOf.push(index);
  }

  /** Forgets the cells of the sequence from `length` on. */
  truncate(length: number): void {
    const kept = Math.max(0, length - this.prefix);
    this.#branchOf.length = Math.min(this.#branchOf.length, kept);
    this.#indexOf.length = this.#branchOf.length;
    if (kept === 0) this.#places = [];
    if (kept === 0) this.#free = 0;
  }

  /** Returns the place in the buffers of the branch of a cell. */
  placeOf(cell: number): number {
    return at(this.#places, at(this.#branchOf, cell - this.prefix));
  }

  /** Returns the index of a cell in its branch, from 1 on. */
  indexOf(cell: number): number {
    return at(this.#indexOf, cell - this.prefix);
  }

  /**
   * Makes room for `branches` branches with at most `length` cells each.
   *
   * @param live one cell of each branch that will go on; the KV of all others is dropped if the buffers grow
   */
  reserve(live: readonly number[], branches: number, length: number): void {
    if (length < this.length) return;
    const from = this.layers;
    const moved = new Map(live.map((cell, place) => [at(this.#branchOf, cell - this.prefix), place]));
    const room = Math.max(branches, moved.size);
    const grown = cellsFor(length);
    const into = allocate(this.#shape, room, grown);
    for (const [layer, { heads, headSize }] of this.#shape.layers.entries()) {
      const width = headSize + 1;
      const cells = this.length * width;
      for (const [branch, place] of moved)
        for (const part of ['key', 'value'] as const)
          for (let head = 0; head < heads; head++) {
            const start = (at(this.#places, branch) * heads + head) * cells;
            const target = (place * heads + head) * grown * width;
            at(into, layer)[part].set(at(from, layer)[part].subarray(start, start + cells), target);
          }
    }
    this.layers = into;
    this.length = grown;
    this.#room = room;
    // Branches that are done have no place any more.
    this.#places = this.#places.map((_, branch) => moved.get(branch) ?? -1);
    this.#free = moved.size;
  }
}

/** Returns the number of cells that a branch of `length` cells takes: with cell 0, in whole blocks. */
export function cellsFor(length: number): number {
  return Math.ceil((length + 1) / BLOCK) * BLOCK;
}

/** Allocates zeros for all cells but cell 0, whose last element is 1. */
function allocate({ layers }: KvShape, branches: number, length: number): KvLayerBuffers[] {
  return layers.map(({ heads, headSize }) => {
    const width = headSize + 1;
    const make = () => {
      const values = new Float32Array(branches * heads * length * width);
      for (let first = headSize; first < values.length; first += length * width) values[first] = 1;
      return values;
    };
    return { key: make(), value: make() };
  });
}
