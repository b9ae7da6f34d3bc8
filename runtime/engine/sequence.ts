/** What one position of every layer weighs. */
export interface KvShape {
  layers: readonly { heads: number; headSize: number }[];
  /** Lengths of buffers that the model takes without a copy, ascending; absent: any. */
  capacities?: readonly number[];
}

export interface KvLayerBuffers {
  /** `[heads, capacity, headSize]`, as GroupQueryAttention writes it in place. */
  key: Float32Array;
  value: Float32Array;
}

/**
 * The KV of one prefix and of the branches that grow from it, and the table of its columns. A column holds one token; its
 * parent is the column that the token follows, so columns form a tree whose trunk is the prefix.
 */
export class Sequence {
  readonly #shape: KvShape;
  layers: readonly KvLayerBuffers[];
  capacity: number;
  tokens: Int32Array;
  /** Column that this one follows; -1 for the first token. */
  parents: Int32Array;
  /** Distance from the beginning along the parents. */
  positions: Int32Array;
  length = 0;
  /** The columns below this one follow each other in a line. */
  linear = 0;

  constructor(shape: KvShape, capacity: number) {
    this.#shape = shape;
    this.capacity = capacity;
    this.layers = allocate(shape, capacity);
    this.tokens = new Int32Array(capacity);
    this.parents = new Int32Array(capacity);
    this.positions = new Int32Array(capacity);
  }

  /** Adds a column and returns its index. The caller sees to the capacity. */
  append(token: number, parent: number): number {
    const column = this.length;
    if (column >= this.capacity) throw new Error('no column left');
    this.tokens[column] = token;
    this.parents[column] = parent;
    this.positions[column] = parent < 0 ? 0 : this.positions[parent]! + 1;
    if (this.linear === column && parent === column - 1) this.linear++;
    this.length++;
    return column;
  }

  /** Forgets the columns from `length` on. Their KV stays in the buffers and is overwritten. */
  truncate(length: number): void {
    this.length = Math.min(this.length, length);
    this.linear = Math.min(this.linear, length);
  }

  /** Length of the common beginning of the trunk and `tokens`. */
  matchLength(tokens: readonly number[]): number {
    const end = Math.min(this.linear, tokens.length);
    let count = 0;
    while (count < end && this.tokens[count] === tokens[count]) count++;
    return count;
  }

  /** Takes over the first `count` columns of another sequence, KV and all. */
  copyFrom(other: Sequence, count: number): void {
    copyColumns(this.#shape, other.layers, other.capacity, this.layers, this.capacity, count);
    this.tokens.set(other.tokens.subarray(0, count));
    this.parents.set(other.parents.subarray(0, count));
    this.positions.set(other.positions.subarray(0, count));
    this.length = count;
    this.linear = Math.min(other.linear, count);
  }

  resize(capacity: number): void {
    const layers = allocate(this.#shape, capacity);
    copyColumns(this.#shape, this.layers, this.capacity, layers, capacity, this.length);
    const grown = (from: Int32Array): Int32Array => {
      const into = new Int32Array(capacity);
      into.set(from.subarray(0, this.length));
      return into;
    };
    this.layers = layers;
    this.capacity = capacity;
    this.tokens = grown(this.tokens);
    this.parents = grown(this.parents);
    this.positions = grown(this.positions);
  }

  /** Throws where the table contradicts itself. */
  checkIntegrity(): void {
    if (this.length > this.capacity || this.linear > this.length) throw new Error('more columns than capacity');
    for (let column = 0; column < this.length; column++) {
      const parent = this.parents[column]!;
      if (parent >= column || parent < -1) throw new Error(`column ${column} follows column ${parent}`);
      const position = parent < 0 ? 0 : this.positions[parent]! + 1;
      if (this.positions[column] !== position) throw new Error(`column ${column} is at the wrong position`);
      if (column < this.linear && parent !== column - 1) throw new Error(`column ${column} is not in line`);
    }
  }
}

/** Bytes of one column in all layers. */
export function columnBytes(shape: KvShape): number {
  return shape.layers.reduce((sum, { heads, headSize }) => sum + 2 * 4 * heads * headSize, 0);
}

function allocate(shape: KvShape, capacity: number): KvLayerBuffers[] {
  return shape.layers.map(({ heads, headSize }) => ({
    key: new Float32Array(heads * capacity * headSize),
    value: new Float32Array(heads * capacity * headSize),
  }));
}

function copyColumns(
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
        to[index]![part].set(
          from[index]![part].subarray(start, start + count * headSize),
          head * toCapacity * headSize,
        );
      }
    }
  }
}
