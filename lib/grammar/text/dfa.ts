import { type Fuel, TooLarge } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import { type CodePoints, rangesOf, TEXT } from './code-points.ts';

/**
 * Represents a deterministic automaton over the characters of `TEXT`. State 0 is the start. Every state can reach an
 * accepting one; if no text is accepted, there are no states.
 */
export interface Dfa {
  states: number;
  accepts: Uint8Array;
  alphabet: Alphabet;
  /** Transition table: `next[state * alphabet.classes + class]` is the next state; -1 if there is none. */
  next: Int32Array;
}

/**
 * Groups code points into classes: those that no state distinguishes share one. Range `i` begins at the code point
 * `firsts[i]` (ascending), ends before `firsts[i + 1]`, and belongs to class `of[i]`.
 */
export interface Alphabet {
  classes: number;
  firsts: Int32Array;
  /** Class of each range; -1: outside `TEXT`. */
  of: Int32Array;
  /** Class of each of the first 128 code points, a fast path for most text; -1: outside `TEXT`. */
  ascii: Int32Array;
}

/** Returns the class of a code point; -1 for one outside `TEXT`. */
export function classOf({ firsts, of, ascii }: Alphabet, codePoint: number): number {
  return (codePoint < 128 ? ascii[codePoint] : of[rangeOf(firsts, codePoint)]) ?? -1;
}

/** Returns the state after a character of the class `characters`; -1 if there is none, or for the class -1. */
export function stepOf({ next, alphabet }: Dfa, state: number, characters: number): number {
  return characters < 0 ? -1 : (next[state * alphabet.classes + characters] ?? -1);
}

/** Tells whether an automaton accepts a text. */
export function accepts(dfa: Dfa, text: string): boolean {
  let state = dfa.states === 0 ? -1 : 0;
  for (const char of text) {
    if (state < 0) return false;
    state = stepOf(dfa, state, classOf(dfa.alphabet, char.codePointAt(0)!));
  }
  return state >= 0 && dfa.accepts[state] === 1;
}

/** Returns the index of the range of an alphabet that contains a code point; `firsts` as in `Alphabet`. */
export function rangeOf(firsts: Int32Array, codePoint: number): number {
  let low = 0;
  for (let high = firsts.length; high - low > 1; ) {
    const middle = (low + high) >> 1;
    if ((firsts[middle] ?? 0) <= codePoint) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * Returns the coarsest alphabet over `TEXT` in which the part of each set within `TEXT` is a union of classes. Throws
 * `TooLarge` if `fuel` is used up.
 */
export function alphabetOf(sets: readonly CodePoints[], fuel: Fuel): Alphabet {
  const toggles = new Map<number, number[]>([[0, []]]);
  const toggle = (at: number, set: number) => toggles.get(at)?.push(set) ?? toggles.set(at, [set]);
  [TEXT, ...sets].forEach((set, i) => {
    for (const [first, last] of rangesOf(set)) {
      toggle(first, i);
      toggle(last + 1, i);
    }
  });
  const firsts = [...toggles.keys()].sort((a, b) => a - b).filter((at) => at <= 0x10_ff_ff);
  const inside = new Set<number>();
  const classes = new Map<string, number>();
  const of = firsts.map((at) => {
    for (const set of toggles.get(at) ?? []) inside.delete(set) || inside.add(set);
    fuel.spend(1 + inside.size);
    if (!inside.has(0)) return -1;
    const key = [...inside].sort((a, b) => a - b).join();
    const known = classes.get(key) ?? classes.size;
    classes.set(key, known);
    return known;
  });
  const table = { classes: classes.size, firsts: Int32Array.from(firsts), of: Int32Array.from(of) };
  const ascii = Int32Array.from({ length: 128 }, (_, codePoint) => table.of[rangeOf(table.firsts, codePoint)] ?? -1);
  return { ...table, ascii };
}

/** Cost of creating or finding a state, in steps of `Fuel`. */
const STATE_STEPS = 10;

/** Builds an automaton. States are identified by a key that the caller chooses. */
export class Builder {
  readonly #rows: Int32Array[] = [];
  readonly #accepts: number[] = [];
  readonly #ids = new Map<string, number>();
  readonly alphabet: Alphabet;
  readonly #fuel: Fuel;
  constructor(alphabet: Alphabet, fuel: Fuel) {
    this.alphabet = alphabet;
    this.#fuel = fuel;
  }

  /**
   * Returns the id of the state with this key, which is created if needed. If `isNew` is true, the caller must set its
   * transitions. Throws `TooLarge` for more than `LIMITS.stringStates` states, or if the fuel is used up.
   */
  state(key: string, accepts: boolean): { id: number; isNew: boolean } {
    this.#fuel.spend(STATE_STEPS);
    const known = this.#ids.get(key);
    if (known !== undefined) return { id: known, isNew: false };
    if (this.#rows.length >= LIMITS.stringStates) {
      throw new TooLarge(`needs more than ${LIMITS.stringStates} states; make it simpler or shorter`);
    }
    this.#fuel.spend(this.alphabet.classes >> 2);
    const id = this.#rows.length;
    this.#ids.set(key, id);
    this.#rows.push(new Int32Array(this.alphabet.classes).fill(-1));
    this.#accepts.push(accepts ? 1 : 0);
    return { id, isNew: true };
  }

  /** Sets the transition from a state for all characters of one class. */
  link(from: number, characters: number, to: number): void {
    this.#row(from)[characters] = to;
  }

  /** Sets the transition from a state for all characters. */
  linkAll(from: number, to: number): void {
    this.#row(from).fill(to);
  }

  #row(state: number): Int32Array {
    const row = this.#rows[state];
    if (!row) throw new RangeError(`there is no state ${state}`);
    return row;
  }

  /**
   * Returns the automaton, without the states from which no accepting state can be reached. Throws `TooLarge` if the
   * fuel is used up.
   */
  finish(): Dfa {
    const { classes } = this.alphabet;
    this.#fuel.spend(this.#rows.length * classes);
    const before: number[][] = this.#rows.map(() => []);
    this.#rows.forEach((row, id) => {
      let last = -1;
      for (const to of row) {
        if (to >= 0 && to !== last) before[to]?.push(id);
        last = to;
      }
    });
    const alive = new Set<number>();
    const open = this.#accepts.flatMap((accepts, id) => (accepts ? [id] : []));
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (alive.has(id)) continue;
      alive.add(id);
      open.push(...(before[id] ?? []));
    }
    if (!alive.has(0)) return { states: 0, accepts: new Uint8Array(), alphabet: this.alphabet, next: new Int32Array() };
    const live = [...alive].sort((a, b) => a - b);
    const renamed = new Int32Array(this.#rows.length).fill(-1);
    live.forEach((id, i) => {
      renamed[id] = i;
    });
    const next = new Int32Array(live.length * classes);
    live.forEach((id, i) => {
      this.#row(id).forEach((to, c) => {
        next[i * classes + c] = to < 0 ? -1 : (renamed[to] ?? -1);
      });
    });
    const accepts = Uint8Array.from(live, (id) => this.#accepts[id] ?? 0);
    return { states: live.length, accepts, alphabet: this.alphabet, next };
  }
}

/**
 * Returns the classes of which a set of code points consists. The alphabet must come from an `alphabetOf` of sets that
 * include this one.
 */
export function classesIn(alphabet: Alphabet, set: CodePoints): number[] {
  const found = new Set<number>();
  for (const [first, last] of rangesOf(set)) {
    for (let i = rangeOf(alphabet.firsts, first); (alphabet.firsts[i] ?? Infinity) <= last; i++) {
      const characters = alphabet.of[i] ?? -1;
      if (characters >= 0) found.add(characters);
    }
  }
  return [...found];
}
