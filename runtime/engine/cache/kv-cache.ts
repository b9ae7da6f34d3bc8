import { BranchCells } from './branch-cells.ts';
import { cellBytes, type KvShape } from './kv-shape.ts';
import { Sequence } from './sequence.ts';

/**
 * Capacities that the model's graphs do not fix are multiples of this many cells, so that buffers fit the next job more
 * often.
 */
const GRANULE = 256;
/** Shortest common prefix that is worth copying from another sequence, in cells. */
const MIN_MATCH = 16;
/**
 * Maximum number of cells of an idle sequence to discard in order to avoid a copy: recomputing so few costs less than
 * copying the rest.
 */
const MAX_LOSS = 64;
/**
 * Fraction of the bytes that running jobs leave to idle sequences, so that the large jobs of one caller do not evict
 * the short prefixes of all others.
 */
const IDLE_SHARE = 1 / 8;

export interface Acquired {
  sequence: Sequence;
  /** Number of cells at the beginning that already hold part of the prefix. */
  cached: number;
}

export interface AcquireOptions {
  /** Only sequences of this scope are reused. Default: `''`. */
  scope?: string;
  /** Bytes that this sequence and those in use may take together. Default: `maxBytes`. */
  mostBytes?: number;
  /**
   * True to reuse exact cells only (`Sequence.exactLength`), and for buffers with exactly the cells of the prefix. The
   * others are room to grow.
   */
  exact?: boolean;
}

/**
 * Owns all sequences: those of running jobs, and idle ones that cache recent prefixes for the next job. Together they
 * stay within `maxBytes`. To make room, the scope whose idle sequences take most bytes loses its least recently used
 * one, so a scope that fills the cache evicts its own prefixes; idle sequences that take at most `IDLE_SHARE` together
 * stay. Three things may exceed `maxBytes`: what a single running job needs, cells that jobs need beyond those they
 * asked for, and jobs that may take more (`AcquireOptions.mostBytes`).
 */
export class KvCache {
  readonly #shape: KvShape;
  readonly #cellBytes: number;
  readonly #maxBytes: number;
  /** Idle sequences, the least recently used first. */
  readonly #idle: Sequence[] = [];
  readonly #used = new Set<Sequence>();

  constructor(shape: KvShape, maxBytes: number) {
    this.#shape = shape;
    this.#cellBytes = cellBytes(shape);
    this.#maxBytes = maxBytes;
  }

  /** Bytes of the buffers and snapshots of the sequences in use. */
  get usedBytes(): number {
    return this.#bytesOf(this.#used);
  }

  /** Number of cells that hold a token, in sequences of running jobs and in idle ones, and the most that fit. */
  get cells(): { running: number; cached: number; most: number } {
    const sum = (sequences: Iterable<Sequence>) => [...sequences].reduce((cells, { length }) => cells + length, 0);
    const most = Math.floor(this.#maxBytes / this.#cellBytes);
    return { running: sum(this.#used), cached: sum(this.#idle), most };
  }

  /** Bytes of the buffers and snapshots of all sequences. */
  get bytes(): number {
    return this.#bytesOf(this.#idle) + this.usedBytes;
  }

  #bytesOf(sequences: Iterable<Sequence>): number {
    let sum = 0;
    for (const { room, snapshots, branches } of sequences)
      sum += room * this.#cellBytes + snapshots.bytes + (branches?.bytes ?? 0);
    return sum;
  }

  /**
   * Returns a sequence with room for at least `cells` cells, and the number of its first cells that already hold
   * `prefix`: the longest beginning, of at least 16 tokens, that any sequence of the scope holds and can continue
   * after. The sequence is in use until `release`. Returns undefined if running jobs leave no memory for it. Compares
   * token ids only, so a cache serves one loaded model. Throws a RangeError if the system gives no memory.
   */
  acquire(prefix: readonly number[], cells: number, options: AcquireOptions = {}): Acquired | undefined {
    const { scope = '', mostBytes = this.#maxBytes, exact = false } = options;
    const room = exact ? cells : this.#roundUp(cells);
    const capacity = exact ? prefix.length : room;
    const best = this.#longestMatch(prefix, scope, exact);
    if (best && this.#idle.includes(best.sequence)) {
      const lost = best.sequence.trunkLength - best.cached;
      // Using the idle sequence itself discards the cells beyond the match; a copy keeps them, if there is memory for
      // it.
      const fits = this.bytes + room * this.#cellBytes <= this.#maxBytes;
      if (lost <= MAX_LOSS || !fits) return this.#takeOver(best, { capacity, room }, mostBytes);
    }
    const sequence = this.#fresh(room, best?.sequence, mostBytes);
    if (!sequence) return undefined;
    if (exact || sequence.capacity < capacity) sequence.resize(capacity);
    sequence.scope = scope;
    if (best) sequence.copyFrom(best.sequence, best.cached);
    return { sequence, cached: best?.cached ?? 0 };
  }

  /** Returns the number of first tokens of `prefix` that a sequence of the scope holds and that a job could reuse. */
  cachedLength(prefix: readonly number[], { scope = '', exact = false }: AcquireOptions = {}): number {
    return this.#longestMatch(prefix, scope, exact)?.cached ?? 0;
  }

  /** Returns an empty sequence for `cells` cells, which does not belong to the cache before `adopt`. */
  blank(cells: number): Sequence {
    return new Sequence(this.#shape, this.#roundUp(cells));
  }

  /** Adds a filled sequence to the idle ones. */
  adopt(sequence: Sequence): void {
    this.#idle.push(sequence);
    this.#evict(0);
  }

  /**
   * Gives the buffers of a sequence in use at least `cells` cells, or exactly so many (`exact`). Evicts idle sequences
   * for them if needed. Throws a RangeError if the system gives no memory.
   */
  reserve(sequence: Sequence, cells: number, { exact = false }: Pick<AcquireOptions, 'exact'> = {}): void {
    if (cells === sequence.capacity || (!exact && cells < sequence.capacity)) return;
    const room = this.#grown(sequence, cells);
    this.#resize(sequence, { capacity: exact ? cells : room, room });
  }

  #resize(sequence: Sequence, { capacity, room }: Pick<Sequence, 'capacity' | 'room'>): void {
    this.#evict((room - sequence.room) * this.#cellBytes);
    sequence.resize(capacity, room);
  }

  /**
   * Makes room for the branches of a sequence in use apart from its trunk. Evicts idle sequences for them if needed.
   * Throws a RangeError if the system gives no memory.
   *
   * @param live one cell of each branch that has begun and will go on
   * @param branches number of branches
   * @param length number of cells of the longest branch
   */
  reserveBranches(sequence: Sequence, live: readonly number[], branches: number, length: number): void {
    const { branches: open } = sequence;
    if (open && length < open.length) return;
    this.#evict(BranchCells.bytes(this.#shape, branches, length) - (open?.bytes ?? 0));
    if (open) open.reserve(live, branches, length);
    else sequence.openBranches(branches, length);
  }

  /**
   * Ends a job's use of a sequence. The first `keep` cells of its trunk stay cached for the next job. Throws if the
   * sequence is not in use.
   */
  release(sequence: Sequence, keep: number): void {
    if (!this.#used.delete(sequence)) throw new Error('released a sequence that was not in use');
    sequence.truncate(Math.min(keep, sequence.trunkLength));
    sequence.branches = null;
    this.#idle.push(sequence);
    this.#evict(0);
  }

  /**
   * Throws if a sequence has two owners or none, if its cell table is inconsistent, or if the sequences exceed the
   * maximum bytes although no job runs.
   *
   * @param owned sequences of the running jobs
   */
  checkIntegrity(owned: readonly Sequence[]): void {
    if (new Set(owned).size !== owned.length) throw new Error('two jobs hold one sequence');
    for (const sequence of owned) if (!this.#used.has(sequence)) throw new Error('a job holds a released sequence');
    if (this.#used.size !== owned.length) throw new Error(`${this.#used.size - owned.length} sequences leaked`);
    if (new Set(this.#idle).size !== this.#idle.length) throw new Error('a sequence is idle twice');
    for (const sequence of this.#idle) {
      if (this.#used.has(sequence)) throw new Error('a sequence is idle and in use');
      if (sequence.trunkLength !== sequence.length) throw new Error('an idle sequence holds more than its trunk');
    }
    for (const sequence of [...this.#idle, ...this.#used]) sequence.checkIntegrity();
    if (this.#used.size === 0 && this.bytes > this.#maxBytes) throw new Error('the cache exceeds its bytes');
  }

  #longestMatch(prefix: readonly number[], scope: string, exact: boolean): Acquired | undefined {
    let best: Acquired | undefined;
    // The most recently released come first, so that among equal matches the oldest can be evicted.
    for (const sequence of [...this.#idle.toReversed(), ...this.#used]) {
      if (sequence.scope !== scope) continue;
      const cached = sequence.matchLength(prefix, exact);
      if (cached > (best?.cached ?? MIN_MATCH - 1)) best = { sequence, cached };
    }
    return best;
  }

  #takeOver(
    { sequence, cached }: Acquired,
    { capacity, room: wanted }: Pick<Sequence, 'capacity' | 'room'>,
    mostBytes: number,
  ): Acquired | undefined {
    const room = this.#grown(sequence, wanted);
    const running = [...this.#used].reduce((sum, used) => sum + used.room, 0);
    if (running > 0 && (running + room) * this.#cellBytes > mostBytes) return undefined;
    this.#idle.splice(this.#idle.indexOf(sequence), 1);
    this.#used.add(sequence);
    sequence.truncate(cached);
    try {
      this.#resize(sequence, { capacity, room });
    } catch (error) {
      this.release(sequence, cached);
      throw error;
    }
    return { sequence, cached };
  }

  /**
   * Returns an empty sequence: a new one, or the oldest idle one whose buffers fit. Avoids evicting `source` if it can.
   * Returns undefined if running jobs leave no memory.
   */
  #fresh(room: number, source: Sequence | undefined, mostBytes: number): Sequence | undefined {
    const bytes = room * this.#cellBytes;
    if (this.#used.size > 0 && mostBytes < this.#maxBytes && this.usedBytes + bytes > mostBytes) return undefined;
    if (this.bytes + bytes > this.#maxBytes) {
      const fitting = this.#evictable(source).find((idle) => idle.room >= room && idle.room <= 2 * room);
      if (fitting) {
        this.#idle.splice(this.#idle.indexOf(fitting), 1);
        fitting.truncate(0);
        this.#used.add(fitting);
        return fitting;
      }
      this.#evict(bytes, source);
      if (this.bytes + bytes > Math.max(mostBytes, this.#maxBytes) && this.#used.size > 0) return undefined;
    }
    const sequence = new Sequence(this.#shape, room);
    this.#used.add(sequence);
    return sequence;
  }

  /** Evicts idle sequences until `bytes` more fit, or only few are left. */
  #evict(bytes: number, spared?: Sequence): void {
    while (this.bytes + bytes > this.#maxBytes) {
      const [oldest] = this.#evictable(spared);
      if (!oldest) return;
      this.#idle.splice(this.#idle.indexOf(oldest), 1);
    }
  }

  /**
   * Returns the idle sequences of the scope that has most idle bytes, the least recently used first; none if all idle
   * ones take at most `IDLE_SHARE`.
   */
  #evictable(spared: Sequence | undefined): readonly Sequence[] {
    if (this.#bytesOf(this.#idle) <= IDLE_SHARE * this.#maxBytes) return [];
    const scopes = Map.groupBy(
      this.#idle.filter((idle) => idle !== spared),
      ({ scope }) => scope,
    );
    let largest: readonly Sequence[] = [];
    for (const sequences of scopes.values()) {
      if (this.#bytesOf(sequences) > this.#bytesOf(largest)) largest = sequences;
    }
    return largest;
  }

  /**
   * Returns the room for `cells` cells. When the sequence must grow, it grows by at least a quarter, so that growing is
   * rare.
   */
  #grown({ room }: Sequence, cells: number): number {
    return cells <= room ? room : this.#roundUp(Math.max(cells, Math.ceil(room * 1.25)));
  }

  #roundUp(cells: number): number {
    const suiting = this.#shape.capacities?.find((capacity) => capacity >= cells);
    return suiting ?? Math.ceil(cells / GRANULE) * GRANULE;
  }
}
