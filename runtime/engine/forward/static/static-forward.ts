import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { at } from '../../../../lib/at.ts';
import type { Manifest, StaticGraphs } from '../../../compile/manifest.ts';
import type { PluginSession, TensorView } from '../../../ort-plugin/plugin-session.ts';
import type { KvBuffer, KvLayerBuffers } from '../../cache/kv-shape.ts';
import type { Sequence } from '../../cache/sequence.ts';
import { type Forward, onlyRun, Scratch, type SequenceRun } from '../forward.ts';
import { integers } from '../tensors.ts';

/** Holds the onnxruntime sessions of a model that is compiled to static graphs. */
export interface StaticSessions {
  /** Session of the graph that looks up embeddings and rotary rows, on the CPU, for any number of tokens. */
  lookup: InferenceSession;
  /** Session for each entry of the manifest's `static.bodies`, in the same order. */
  bodies: readonly PluginSession[];
  head: PluginSession;
}

/**
 * Runs the tokens of all branches as one sequence over static graphs. Tokens are split into runs and padded to the
 * sizes that there are graphs for, and a mask says what each token sees. The graphs return the keys and values of new
 * cells, which are copied into the sequence.
 */
export class StaticForward implements Forward {
  readonly vocabSize: number;
  readonly slots = 1;
  readonly #sessions: StaticSessions;
  readonly #manifest: Manifest;
  readonly #graphs: StaticGraphs;
  /** Scratch memory, by tensor name and length. */
  readonly #memory = new Map<string, Float32Array>();
  /** Scratch memory for 16-bit keys and values, by tensor name and length. */
  readonly #halfMemory = new Map<string, Uint16Array>();
  readonly #logits = new Scratch((length) => new Float32Array(length));

  constructor(sessions: StaticSessions, manifest: Manifest, graphs: StaticGraphs) {
    this.#sessions = sessions;
    this.#manifest = manifest;
    this.#graphs = graphs;
    this.vocabSize = manifest.vocabSize;
  }

  async run(batch: readonly SequenceRun[]): Promise<Float32Array> {
    const { sequence, start, rows } = onlyRun(batch);
    const logits = this.#logits.take(rows.length * this.vocabSize);
    for (const run of planRuns(sequence, start, this.#graphs.bodies)) {
      const rowsOf = await this.#body(sequence, run);
      const wanted = rows.flatMap((row, index) =>
        row >= run.first && row < run.end ? [{ row: row - run.first, index }] : [],
      );
      for (let at = 0; at < wanted.length; at += this.#graphs.head.rows) {
        await this.#head(rowsOf, wanted.slice(at, at + this.#graphs.head.rows), logits);
      }
    }
    return logits;
  }

  /**
   * Runs the layers over the cells of a run and stores their keys and values. Returns the tensors that the head reads,
   * by name.
   */
  async #body(sequence: Sequence, run: StaticRun): Promise<Map<string, Float32Array>> {
    const { chunk, past } = run;
    const { bodies, head } = this.#graphs;
    const { inputs, kv } = this.#manifest;
    const views = await this.#lookup(sequence, run);
    for (const { name, window } of inputs.masks) {
      const mask = this.#take(name, chunk * (past + chunk));
      writeStaticMask(mask, sequence, run, window);
      views.push({ name, data: mask, dims: [1, 1, chunk, past + chunk] });
    }
    const fresh: TensorView[] = [];
    for (const [index, { heads, headSize, past: names, present }] of kv.entries()) {
      const { key, value } = at(sequence.layers, index);
      for (const [part, data] of [key, value].entries()) {
        const pastCells = run.pastCells
          ? this.#gather(at(names, part), data, sequence, run, { heads, headSize })
          : data;
        views.push({ name: at(names, part), data: pastCells, dims: [1, heads, past, headSize] });
        const made = this.#takeCells(at(present, part), heads * chunk * headSize);
        fresh.push({ name: at(present, part), data: made, dims: [1, heads, chunk, headSize] });
      }
    }
    const hidden = head.inputs.map(({ from, width }) => ({
      name: from,
      data: this.#take(from, chunk * width),
      dims: [1, chunk, width],
    }));
    const session = bodies.findIndex((body) => body.chunk === chunk && body.past === past);
    await at(this.#sessions.bodies, session).run(views, [...hidden, ...fresh]);
    keep(sequence.layers, sequence.capacity, run, kv, fresh);
    return new Map(hidden.map(({ name, data }) => [name, data]));
  }

  /** Returns the embeddings and the rotary position rows of a run's tokens, padded to the length of its chunk. */
  async #lookup(sequence: Sequence, { first, end, chunk }: StaticRun): Promise<TensorView[]> {
    const { inputs } = this.#manifest;
    const { embeddings, rotary } = this.#graphs;
    const feeds: Record<string, Tensor> = { [inputs.tokens]: integers(sequence.tokens, first, end) };
    if (inputs.positions && rotary.length > 0) feeds[inputs.positions] = integers(sequence.positions, first, end);
    const found = await this.#sessions.lookup.run(feeds);
    const padded = ({ name, width }: { name: string; width: number }, dims: number[]): TensorView => {
      const data = this.#take(name, chunk * width);
      data.set(found[name]!.data as Float32Array);
      data.fill(0, (end - first) * width);
      return { name, data, dims };
    };
    return [
      ...embeddings.map((one) => padded(one, [1, chunk, one.width])),
      ...rotary.map((one) => padded(one, [1, 1, chunk, one.width])),
    ];
  }

  /**
   * Computes the logits of some rows of a run and writes them to `logits`.
   *
   * @param rowsOf tensors that the layers gave to the head, by name
   * @param wanted rows of the run, each with the index of its row in `logits`
   */
  async #head(
    rowsOf: ReadonlyMap<string, Float32Array>,
    wanted: readonly { row: number; index: number }[],
    logits: Float32Array,
  ): Promise<void> {
    const { rows, inputs } = this.#graphs.head;
    const views = inputs.map(({ name, from, width }) => {
      const data = this.#take(name, rows * width);
      for (const [at, { row }] of wanted.entries()) {
        data.set(rowsOf.get(from)!.subarray(row * width, (row + 1) * width), at * width);
      }
      return { name, data, dims: [1, rows, width] };
    });
    const found = this.#take(this.#manifest.logits, rows * this.vocabSize);
    await this.#sessions.head.run(views, [
      { name: this.#manifest.logits, data: found, dims: [1, rows, this.vocabSize] },
    ]);
    for (const [at, { index }] of wanted.entries()) {
      logits.set(found.subarray(at * this.vocabSize, (at + 1) * this.vocabSize), index * this.vocabSize);
    }
  }

  /** Copies the past cells of a run next to each other. The mask hides the unused cells after them. */
  #gather(
    name: string,
    from: KvBuffer,
    { capacity }: Sequence,
    { pastCells, past }: StaticRun,
    { heads, headSize }: { heads: number; headSize: number },
  ): KvBuffer {
    const into = this.#takeCells(name, heads * past * headSize);
    const cells = pastCells ?? [];
    for (let first = 0; first < cells.length; ) {
      let end = first + 1;
      while (end < cells.length && cells[end] === at(cells, end - 1) + 1) end++;
      for (let head = 0; head < heads; head++) {
        const source = (head * capacity + at(cells, first)) * headSize;
        into.set(from.subarray(source, source + (end - first) * headSize), (head * past + first) * headSize);
      }
      first = end;
    }
    return into;
  }

  /** Returns scratch memory for a tensor: the same for every tensor of this name and length. */
  #take(name: string, length: number): Float32Array {
    return scratch(this.#memory, name, length, () => new Float32Array(length));
  }

  /** Returns scratch memory for keys or values, in the type that the graphs have. */
  #takeCells(name: string, length: number): KvBuffer {
    if (this.#graphs.kvType === 'float32') return this.#take(name, length);
    return scratch(this.#halfMemory, name, length, () => new Uint16Array(length));
  }
}

function scratch<T>(memory: Map<string, T>, name: string, length: number, allocate: () => T): T {
  const key = `${name} ${length}`;
  const known = memory.get(key) ?? allocate();
  memory.set(key, known);
  return known;
}

/** Copies the keys and values of new cells, `[heads, chunk, headSize]`, into the sequence. */
function keep(
  layers: readonly KvLayerBuffers[],
  capacity: number,
  { first, end, chunk }: StaticRun,
  kv: Manifest['kv'],
  fresh: readonly TensorView[],
): void {
  for (const [index, { heads, headSize }] of kv.entries()) {
    const { key, value } = at(layers, index);
    for (const [part, into] of [key, value].entries()) {
      const made = at(fresh, 2 * index + part).data as KvBuffer;
      for (let head = 0; head < heads; head++) {
        const from = head * chunk * headSize;
        into.set(made.subarray(from, from + (end - first) * headSize), (head * capacity + first) * headSize);
      }
    }
  }
}

/** Describes one run of a static graph: its new cells are those from `first` to before `end`. */
interface StaticRun {
  first: number;
  end: number;
  /** Number of new tokens that the graph computes, including padding. */
  chunk: number;
  /** Number of past cells that the graph reads, including unused ones. */
  past: number;
  /** Cells of the sequence that form the past, in order; null if the sequence's buffers are fed as they are. */
  pastCells: readonly number[] | null;
}

interface StaticSize {
  chunk: number;
  past: number;
}

/**
 * Number of runs of a chunk size that cost as much as one run of the next larger size. If the remaining cells fit in at
 * most this many, the smaller size is used.
 */
const SMALL_RUNS = 3;

/**
 * Splits the cells from `start` on into runs of the given sizes. `sizes` must have every past size for every chunk
 * size. Throws a RangeError if a cell sees more past cells than the largest size has.
 */
export function planRuns(sequence: Sequence, start: number, sizes: readonly StaticSize[]): StaticRun[] {
  const chunks = ascending(sizes.map(({ chunk }) => chunk));
  const pasts = ascending(sizes.map(({ past }) => past));
  const runs: StaticRun[] = [];
  for (let first = start; first < sequence.length; ) {
    const chunk = chunkFor(sequence.length - first, chunks);
    let end = Math.min(sequence.length, first + chunk);
    let pastCells = seenBefore(sequence, first, end);
    // Branches side by side may together see more past cells than fit; those of one cell always fit.
    while (pastCells.length > pasts.at(-1)! && end > first + 1) {
      end = first + Math.ceil((end - first) / 2);
      pastCells = seenBefore(sequence, first, end);
    }
    const past = pasts.find((size) => size >= pastCells.length);
    if (past === undefined)
      throw new RangeError(`cell ${first} sees ${pastCells.length} cells, more than any graph has`);
    runs.push({ first, end, chunk, past, pastCells: past === sequence.capacity ? null : pastCells });
    first = end;
  }
  return runs;
}

function chunkFor(count: number, chunks: readonly number[]): number {
  const fitting = chunks.find((chunk) => count <= chunk) ?? chunks.at(-1)!;
  const smaller = chunks[chunks.indexOf(fitting) - 1];
  return smaller !== undefined && count <= smaller * SMALL_RUNS ? smaller : fitting;
}

/** Returns the cells below `first` that are ancestors of the cells from `first` to before `end`, ascending. */
function seenBefore(sequence: Sequence, first: number, end: number): number[] {
  const { parents, trunkLength } = sequence;
  const branched = new Set<number>();
  let trunk = 0;
  for (let cell = first; cell < end; cell++) {
    let ancestor = at(parents, cell);
    while (ancestor >= trunkLength && !(ancestor < first && branched.has(ancestor))) {
      if (ancestor < first) branched.add(ancestor);
      ancestor = at(parents, ancestor);
    }
    if (ancestor < trunkLength) trunk = Math.max(trunk, Math.min(ancestor + 1, first));
  }
  const pastCells = Array.from({ length: trunk }, (_, cell) => cell);
  return pastCells.concat([...branched].sort((a, b) => a - b));
}

function ascending(sizes: readonly number[]): number[] {
  return [...new Set(sizes)].sort((a, b) => a - b);
}

/**
 * Value added to the attention score of a cell that a token must not see: low enough for a weight of 0, and within the
 * range of 16-bit floats.
 */
const HIDDEN = -10_000;

/**
 * Writes the additive attention mask of a run, `[chunk, past + chunk]`. A token sees its ancestors and itself; with a
 * sliding window, only the last `window` positions of these. Padding rows see only themselves and are never read.
 */
export function writeStaticMask(
  into: Float32Array,
  sequence: Sequence,
  { first, end, chunk, past, pastCells }: StaticRun,
  window: number | null,
): void {
  const { trunkLength, parents, positions } = sequence;
  const width = past + chunk;
  into.fill(HIDDEN);
  const pastCellOf = pastCells && new Map(pastCells.map((cell, index) => [cell, index]));
  const columnOf = (cell: number): number => (cell >= first ? past + cell - first : (pastCellOf?.get(cell) ?? cell));
  for (let cell = first; cell < end; cell++) {
    const row = (cell - first) * width;
    const lowest = window === null ? 0 : at(positions, cell) - window + 1;
    let ancestor = cell;
    while (ancestor >= trunkLength || ancestor >= first) {
      if (at(positions, ancestor) >= lowest) into[row + columnOf(ancestor)] = 0;
      ancestor = at(parents, ancestor);
    }
    // From here on the ancestors are the trunk before this run, where a cell's index is its position and its index
    // among the past cells.
    if (ancestor >= 0) into.fill(0, row + Math.min(Math.max(0, lowest), ancestor + 1), row + ancestor + 1);
  }
  for (let spare = end - first; spare < chunk; spare++) into[spare * width + past + spare] = 0;
}
