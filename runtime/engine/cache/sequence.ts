import { at } from '../../../lib/at.ts';
import { type InImage, RotaryPositions } from '../forward/rotary-positions.ts';
import { BranchCells } from './branch-cells.ts';
import { cellBytes, type KvBuffer, type KvLayerBuffers, type KvShape } from './kv-shape.ts';
import { MOST_SNAPSHOTS, Snapshots, snapshotBytes } from './snapshots.ts';

/**
 * Holds the KV of one prefix and of the branches after it, and the table of its cells. A cell holds one token. Its
 * parent is the cell of the preceding token, so cells form a tree; the prefix is its trunk.
 */
export class Sequence {
  readonly #shape: KvShape;
  layers: readonly KvLayerBuffers[];
  /** Number of cells of the buffers. */
  capacity: number;
  /** Number of cells that memory is allocated for: the buffers can grow to so many in place. */
  room: number;
  #block: KvBuffer;
  /** Token id of each cell, from the vocabulary or, for media, above it (`FIRST_MEDIA_ID`). */
  tokens: Float64Array;
  /** Index of the cell that each cell follows; -1 for the first token. */
  parents: Int32Array;
  /** Position of each cell: its distance from the first token, along the parents. */
  positions: Int32Array;
  /** Positions of each cell in time, height and width, for models with three-part rotary embeddings. */
  rotary: RotaryPositions;
  length = 0;
  /** Scope of the job that the sequence was made for. Only jobs of the same scope may see its cells. */
  scope = '';
  /** Number of times that cells were discarded. While it stays the same, so does the content of the cells. */
  discards = 0;
  /** Number of cells in the trunk: cells below this index each follow the one before. */
  trunkLength = 0;
  /**
   * Number of cells at the beginning that have the same bits whatever ran beside them. Those that a chat wrote have
   * not: one row alone has kernels of its own.
   */
  exactLength = 0;
  readonly snapshots: Snapshots;
  /** Number of cells at the end that mean nothing (`pad`). */
  padding = 0;
  /** KV of the cells after the prefix, while branches are computed apart from it; else null. */
  branches: BranchCells | null = null;

  constructor(shape: KvShape, capacity: number) {
    this.#shape = shape;
    this.capacity = capacity;
    this.room = capacity;
    this.#block = allocate(shape, capacity);
    this.layers = buffersIn(this.#block, shape, capacity, capacity);
    this.snapshots = new Snapshots(shape.states ?? []);
    this.tokens = new Float64Array(capacity);
    this.parents = new Int32Array(capacity);
    this.positions = new Int32Array(capacity);
    this.rotary = new RotaryPositions(capacity);
  }

  /**
   * Appends a cell and returns its index. Throws if the capacity is used up (`KvCache.reserve` grows it).
   *
   * @param parent cell that it follows; -1 for the first token
   * @param image position of an image feature, if the model uses its row and column
   * @param index index of the cell in its branch, from 1 on, if branches are computed apart from their prefix
   */
  append(token: number, parent: number, image?: InImage, index = 0): number {
    this.branches?.append(parent, index);
    return this.#add(token, parent, image);
  }

  #add(token: number, parent: number, image?: InImage): number {
    const cell = this.length;
    if (!this.branches && cell >= this.capacity) throw new Error('no cell left');
    if (cell >= this.tokens.length) this.#growTable(Math.ceil(cell * 1.25) + 64);
    this.tokens[cell] = token;
    this.parents[cell] = parent;
    this.positions[cell] = parent < 0 ? 0 : at(this.positions, parent) + 1;
    this.rotary.place(cell, parent, image);
    if (!this.branches && this.trunkLength === cell && parent === cell - 1) this.trunkLength++;
    this.length++;
    return cell;
  }

  /**
   * Appends a copy of a cell, for a run that computes it again: in its branch, at its index, if branches are computed
   * apart from their prefix.
   *
   * @param parent cell that the copy follows: the parent of the cell, or a copy of it
   */
  appendCopy(cell: number, parent: number): number {
    this.branches?.append(cell, this.branches.indexOf(cell));
    return this.#add(at(this.tokens, cell), parent);
  }

  /** Appends cells that mean nothing after the trunk, until `unpad`. */
  pad(count: number): void {
    if (this.length + count > this.capacity) this.resize(this.length + count);
    for (let added = 0; added < count; added++) this.append(0, this.length - 1);
    this.padding = count;
  }

  /** Removes the cells that `pad` appended. */
  unpad(): void {
    this.length -= this.padding;
    this.trunkLength = this.length;
    this.padding = 0;
  }

  /** Discards the cells from `length` on. Their KV stays in the buffers until new cells overwrite it. */
  truncate(length: number): void {
    if (length < this.length) this.discards++;
    this.length = Math.min(this.length, length);
    this.trunkLength = Math.min(this.trunkLength, length);
    this.exactLength = Math.min(this.exactLength, length);
    this.snapshots.truncate(length);
    this.branches?.truncate(this.length);
  }

  /**
   * Opens room for branches after the trunk, which is then their prefix: from now on, the KV of new cells is apart from
   * that of the trunk, whose buffers get the length of the trunk.
   *
   * @param branches number of branches
   * @param length number of cells of the longest branch
   */
  openBranches(branches: number, length: number): BranchCells {
    if (this.capacity !== this.length) this.resize(this.length);
    this.branches = new BranchCells(this.#shape, this.length, branches, length);
    return this.branches;
  }

  /**
   * Returns the number of leading `tokens` that the trunk holds and that a new job can continue after: with recurrent
   * layers, only up to a cell with a snapshot.
   *
   * @param exact true to count exact cells only
   */
  matchLength(tokens: readonly number[], exact = false): number {
    const end = Math.min(exact ? this.exactLength : this.trunkLength, tokens.length);
    let count = 0;
    while (count < end && this.tokens[count] === tokens[count]) count++;
    return this.snapshots.resumableLength(count);
  }

  /** Replaces this sequence with the first `count` cells of another one, including their KV and snapshots. */
  copyFrom(other: Sequence, count: number): void {
    moveCells(this.#shape, other, this, count);
    this.tokens.set(other.tokens.subarray(0, count));
    this.parents.set(other.parents.subarray(0, count));
    this.positions.set(other.positions.subarray(0, count));
    this.rotary.copyFrom(other.rotary, count);
    this.length = count;
    this.trunkLength = Math.min(other.trunkLength, count);
    this.exactLength = Math.min(other.exactLength, count);
    this.snapshots.copyFrom(other.snapshots, count);
  }

  /**
   * Gives the buffers another number of cells, at least `length`. Moves the cells within the allocated memory, unless
   * it is given another `room`: writing to new memory takes several times as long.
   */
  resize(capacity: number, room = Math.max(capacity, this.room)): void {
    if (capacity === this.capacity && room === this.room) return;
    const block = room === this.room ? this.#block : allocate(this.#shape, room);
    const layers = buffersIn(block, this.#shape, capacity, room);
    moveCells(this.#shape, this, { layers, capacity }, this.length);
    this.#block = block;
    this.layers = layers;
    this.capacity = capacity;
    this.room = room;
    if (this.tokens.length < capacity) this.#growTable(capacity);
  }

  /** Gives the table of cells room for `capacity` cells. */
  #growTable(capacity: number): void {
    const grown = <T extends Int32Array | Float64Array>(from: T, into: T): T => {
      into.set(from.subarray(0, this.length));
      return into;
    };
    this.tokens = grown(this.tokens, new Float64Array(capacity));
    this.parents = grown(this.parents, new Int32Array(capacity));
    this.positions = grown(this.positions, new Int32Array(capacity));
    const rotary = new RotaryPositions(capacity);
    rotary.copyFrom(this.rotary, this.length);
    this.rotary = rotary;
  }

  /** Throws if the cell table is inconsistent, or if a snapshot belongs to no cell. */
  checkIntegrity(): void {
    if ((this.branches?.prefix ?? this.length) > this.capacity || this.trunkLength > this.length)
      throw new Error('more cells than capacity');
    if (this.capacity > this.room) throw new Error('more capacity than room');
    for (const cell of this.snapshots.cells)
      if (cell >= this.length) throw new Error(`snapshot of the free cell ${cell}`);
    for (let cell = 0; cell < this.length; cell++) {
      const parent = at(this.parents, cell);
      if (parent >= cell || parent < -1) throw new Error(`cell ${cell} follows cell ${parent}`);
      const position = parent < 0 ? 0 : at(this.positions, parent) + 1;
      if (this.positions[cell] !== position) throw new Error(`cell ${cell} is at the wrong position`);
      this.rotary.check(cell, parent);
      if (cell < this.trunkLength && parent !== cell - 1) throw new Error(`cell ${cell} is not in line`);
    }
  }
}

/** Returns the maximum bytes that a cached prefix of `length` tokens needs, including its snapshots. */
export function prefixBytes(shape: KvShape, length: number): number {
  return length * cellBytes(shape) + MOST_SNAPSHOTS * snapshotBytes(shape.states ?? []);
}

/**
 * Allocates the KV of all layers as one block, which returns to the operating system when the sequence is dropped
 * (`ENGINE_MEMORY` in `supervisor/children/engine-child.ts`). Many small blocks of various sizes would fragment the
 * heap.
 */
function allocate(shape: KvShape, room: number): KvBuffer {
  const Buffer = shape.half ? Uint16Array : Float32Array;
  return new Buffer((room * cellBytes(shape)) / Buffer.BYTES_PER_ELEMENT);
}

/** Returns the buffers of all layers in a block with `room` cells, of which they have `capacity`. */
function buffersIn(block: KvBuffer, { layers }: KvShape, capacity: number, room: number): KvLayerBuffers[] {
  let start = 0;
  const take = (width: number) => {
    const buffer = block.subarray(start, start + width * capacity);
    start += width * room;
    return buffer;
  };
  return layers.map(({ heads, headSize }) => ({ key: take(heads * headSize), value: take(heads * headSize) }));
}

/** Holds buffers of cells: `[heads, capacity, headSize]` in each layer. */
type Buffers = Pick<Sequence, 'layers' | 'capacity'>;

/** Copies the first `count` cells to other buffers, which may share their memory. */
function moveCells(shape: KvShape, from: Buffers, to: Buffers, count: number): void {
  for (const [index, { heads, headSize }] of shape.layers.entries()) {
    // No head may overwrite one that is still to be moved.
    const order = Array.from({ length: heads }, (_, head) => (to.capacity > from.capacity ? heads - 1 - head : head));
    for (const part of ['key', 'value'] as const) {
      for (const head of order) {
        const start = head * from.capacity * headSize;
        const cells = at(from.layers, index)[part].subarray(start, start + count * headSize);
        at(to.layers, index)[part].set(cells, head * to.capacity * headSize);
      }
    }
  }
}
