import { at } from '../../../lib/at.ts';
import { type InImage, RotaryPositions } from '../forward/rotary-positions.ts';
import { MOST_SNAPSHOTS, Snapshots, snapshotBytes } from './snapshots.ts';

/**
 * Describes the KV of a model: its layers, its float type, the buffer lengths that its graphs accept, and the states of
 * its recurrent layers.
 */
export interface KvShape {
  layers: readonly { heads: number; headSize: number }[];
  /** True if keys and values are 16-bit floats; false or absent for 32-bit floats. */
  half?: boolean;
  /** Buffer lengths, in cells, that the model accepts without a copy, ascending. Absent if it accepts any length. */
  capacities?: readonly number[];
  /** Number of floats of each state of the recurrent layers; absent if the model has none. */
  states?: readonly number[];
}

/** Represents keys or values of a layer: 32-bit floats, or the bits of 16-bit floats if `KvShape.half`. */
export type KvBuffer = Float32Array | Uint16Array;

/**
 * Holds the keys and values of a layer: `[heads, capacity, headSize]` each, as GroupQueryAttention writes them in
 * place.
 */
export interface KvLayerBuffers {
  key: KvBuffer;
  value: KvBuffer;
}

/**
 * Holds the KV of one prefix and of the branches after it, and the table of its cells. A cell holds one token. Its
 * parent is the cell of the preceding token, so cells form a tree; the prefix is its trunk.
 */
export class Sequence {
  readonly #shape: KvShape;
  layers: readonly KvLayerBuffers[];
  capacity: number;
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
  readonly snapshots: Snapshots;

  constructor(shape: KvShape, capacity: number) {
    this.#shape = shape;
    this.capacity = capacity;
    this.layers = allocate(shape, capacity);
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
   */
  append(token: number, parent: number, image?: InImage): number {
    const cell = this.length;
    if (cell >= this.capacity) throw new Error('no cell left');
    this.tokens[cell] = token;
    this.parents[cell] = parent;
    this.positions[cell] = parent < 0 ? 0 : at(this.positions, parent) + 1;
    this.rotary.place(cell, parent, image);
    if (this.trunkLength === cell && parent === cell - 1) this.trunkLength++;
    this.length++;
    return cell;
  }

  /** Discards the cells from `length` on. Their KV stays in the buffers until new cells overwrite it. */
  truncate(length: number): void {
    if (length < this.length) this.discards++;
    this.length = Math.min(this.length, length);
    this.trunkLength = Math.min(this.trunkLength, length);
    this.snapshots.truncate(length);
  }

  /**
   * Returns the number of leading `tokens` that the trunk holds and that a new job can continue after: with recurrent
   * layers, only up to a cell with a snapshot.
   */
  matchLength(tokens: readonly number[]): number {
    const end = Math.min(this.trunkLength, tokens.length);
    let count = 0;
    while (count < end && this.tokens[count] === tokens[count]) count++;
    return this.snapshots.resumableLength(count);
  }

  /** Replaces this sequence with the first `count` cells of another one, including their KV and snapshots. */
  copyFrom(other: Sequence, count: number): void {
    copyCells(this.#shape, other.layers, other.capacity, this.layers, this.capacity, count);
    this.tokens.set(other.tokens.subarray(0, count));
    this.parents.set(other.parents.subarray(0, count));
    this.positions.set(other.positions.subarray(0, count));
    this.rotary.copyFrom(other.rotary, count);
    this.length = count;
    this.trunkLength = Math.min(other.trunkLength, count);
    this.snapshots.copyFrom(other.snapshots, count);
  }

  resize(capacity: number): void {
    const layers = allocate(this.#shape, capacity);
    copyCells(this.#shape, this.layers, this.capacity, layers, capacity, this.length);
    const grown = <T extends Int32Array | Float64Array>(from: T, into: T): T => {
      into.set(from.subarray(0, this.length));
      return into;
    };
    this.layers = layers;
    this.capacity = capacity;
    this.tokens = grown(this.tokens, new Float64Array(capacity));
    this.parents = grown(this.parents, new Int32Array(capacity));
    this.positions = grown(this.positions, new Int32Array(capacity));
    const rotary = new RotaryPositions(capacity);
    rotary.copyFrom(this.rotary, this.length);
    this.rotary = rotary;
  }

  /** Throws if the cell table is inconsistent, or if a snapshot belongs to no cell. */
  checkIntegrity(): void {
    if (this.length > this.capacity || this.trunkLength > this.length) throw new Error('more cells than capacity');
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

/** Returns a layer's keys or values unchanged if they are 32-bit floats. Throws if they are 16-bit floats. */
export function floatBuffer(buffer: KvBuffer): Float32Array {
  if (!(buffer instanceof Float32Array))
    throw new Error('16-bit keys and values were given to a graph with 32-bit ones');
  return buffer;
}

/** Returns the number of bytes of the keys and values of one cell, over all layers. */
export function cellBytes({ layers, half }: KvShape): number {
  const elements = layers.reduce((sum, { heads, headSize }) => sum + 2 * heads * headSize, 0);
  return elements * (half ? Uint16Array : Float32Array).BYTES_PER_ELEMENT;
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
function allocate(shape: KvShape, capacity: number): KvLayerBuffers[] {
  const Buffer = shape.half ? Uint16Array : Float32Array;
  const block = new Buffer((capacity * cellBytes(shape)) / Buffer.BYTES_PER_ELEMENT);
  let end = 0;
  const take = (length: number) => {
    end += length;
    return block.subarray(end - length, end);
  };
  return shape.layers.map(({ heads, headSize }) => {
    const length = heads * capacity * headSize;
    return { key: take(length), value: take(length) };
  });
}

function copyCells(
  shape: KvShape,
  from: readonly KvLayerBuffers[],
  fromCapacity: number,
  to: readonly KvLayerBuffers[],
  toCapacity: number,
  count: number,
): void {
  for (const [index, { heads, headSize }] of shape.layers.entries()) {
    for (const part of ['key', 'value'] as const) {
      for (let head = 0; head < heads; head++) {
        const start = head * fromCapacity * headSize;
        const cells = at(from, index)[part].subarray(start, start + count * headSize);
        at(to, index)[part].set(cells, head * toCapacity * headSize);
      }
    }
  }
}
