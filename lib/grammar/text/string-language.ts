import { at } from '../../at.ts';
import { type Fuel, TooLarge } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import { codePointOf } from './code-points.ts';
import { combine, lengthDfa } from './combine.ts';
import { classOf, type Dfa, rangeOf, stepOf } from './dfa.ts';

/**
 * Represents a set of allowed texts by an automaton, which is null for any text, and bounds on the length in
 * characters. A position in a text is the automaton's state and the number of characters so far; `fits` tells whether
 * the text can still become an allowed one.
 */
export class StringLanguage {
  readonly dfa: Dfa | null;
  readonly min: number;
  readonly max: number;
  /**
   * `shortest[state * (min + 1) + n]`: length of the shortest continuation from that state with at least n characters;
   * -1 if there is none.
   */
  readonly #shortest: Int32Array | null;
  /**
   * Length of the shortest continuation to an allowed text, without regard to the length bounds, from the state where
   * it is longest; 0 without an automaton.
   */
  readonly longestRest: number;

  constructor(dfa: Dfa | null, min: number, max: number, fuel: Fuel) {
    this.dfa = dfa;
    this.min = min;
    this.max = max;
    this.#shortest = dfa && shortestRests(dfa, min, fuel);
    this.longestRest =
      this.#shortest?.reduce((most, rest, i) => (i % (min + 1) === 0 ? Math.max(most, rest) : most), 0) ?? 0;
  }

  get empty(): boolean {
    return !this.fits(0, 0);
  }

  /**
   * The length of the shortest allowed text in characters; -1 if no text satisfies the automaton and the minimum
   * length.
   */
  get shortestLength(): number {
    return this.rest(0, 0);
  }

  /**
   * Returns the smallest number of characters that complete a text that reached `state` after `length` characters; -1
   * if it cannot be completed.
   */
  rest(state: number, length: number): number {
    const missing = Math.max(0, this.min - length);
    if (this.dfa?.states === 0) return -1;
    return this.#shortest ? (this.#shortest[state * (this.min + 1) + missing] ?? -1) : missing;
  }

  /**
   * Tells whether a text that reached `state` after `length` characters can still be completed within the maximum
   * length.
   */
  fits(state: number, length: number): boolean {
    const rest = this.rest(state, length);
    return rest >= 0 && length + rest <= this.max;
  }

  /** Tells whether a text that reached `state` after `length` characters is allowed as it is. */
  accepts(state: number, length: number): boolean {
    return length >= this.min && length <= this.max && (this.dfa === null || this.dfa.accepts[state] === 1);
  }

  /** Returns the state after one more character; -1 if the text could not become an allowed one with it. */
  step(state: number, length: number, codePoint: number): number {
    const next = this.#move(state, codePoint);
    return next >= 0 && this.fits(next, length + 1) ? next : -1;
  }

  #move(state: number, codePoint: number): number {
    const { dfa } = this;
    if (!dfa) return isText(codePoint) ? 0 : -1;
    return stepOf(dfa, state, classOf(dfa.alphabet, codePoint));
  }

  /**
   * Tells whether some character from `first` to `last` may come next. Without an automaton, only these two characters
   * are checked, which suffices for the ranges of UTF-8 sequences.
   */
  allowsAny(state: number, length: number, first: number, last: number): boolean {
    const { dfa } = this;
    if (!dfa) return this.fits(0, length + 1) && (isText(first) || isText(last));
    const { firsts, of } = dfa.alphabet;
    for (let i = rangeOf(firsts, first); (firsts[i] ?? Infinity) <= last; i++) {
      const next = stepOf(dfa, state, of[i] ?? -1);
      if (next >= 0 && this.fits(next, length + 1)) return true;
    }
    return false;
  }

  /**
   * Returns the code point of the one character that can come next; -1 if there are several, or none, or if the text
   * may end here.
   */
  onlyNext(state: number, length: number): number {
    const { dfa } = this;
    if (!dfa || this.accepts(state, length)) return -1;
    const { firsts, of } = dfa.alphabet;
    let only = -1;
    for (let i = 0; i < firsts.length; i++) {
      const first = firsts[i] ?? 0;
      const next = stepOf(dfa, state, of[i] ?? -1);
      if (next < 0 || !this.fits(next, length + 1)) continue;
      if (only >= 0 || (firsts[i + 1] ?? 0) !== first + 1) return -1;
      only = first;
    }
    return only;
  }

  /**
   * Yields the allowed texts that continue one that reached `state` after `length` characters, without that beginning:
   * short ones first where that is easy, each once. Ends after `WORD_STEPS` steps, so it may omit some.
   */
  *words(state = 0, length = 0): Generator<string> {
    if (!this.fits(state, length)) return;
    if (this.accepts(state, length)) yield '';
    // A stack instead of recursion, because texts may be long.
    const open = [this.#continuations(state, length, '')];
    for (let steps = 0; open.length > 0 && steps < WORD_STEPS; steps++) {
      const next = at(open, open.length - 1).next();
      if (next.done) open.pop();
      else {
        const { state, text, length } = next.value;
        if (this.accepts(state, length)) yield text;
        open.push(this.#continuations(state, length, text));
      }
    }
  }

  /** Yields what one more character leads to, where a text can still be completed; nearest to an end first. */
  *#continuations(state: number, length: number, before: string): Generator<Continuation> {
    const to = (codePoint: number, next: number) => ({
      state: next,
      text: before + String.fromCodePoint(codePoint),
      length: length + 1,
    });
    if (!this.dfa) {
      if (this.fits(0, length + 1)) for (const codePoint of PLAIN_CHARACTERS) yield to(codePoint, 0);
      return;
    }
    const { firsts, of } = this.dfa.alphabet;
    const ranges: { first: number; last: number; next: number; rest: number }[] = [];
    for (let i = 0; i < firsts.length; i++) {
      const next = stepOf(this.dfa, state, of[i] ?? -1);
      if (next < 0 || !this.fits(next, length + 1)) continue;
      const last = (firsts[i + 1] ?? 0x11_00_00) - 1;
      ranges.push({ first: firsts[i] ?? 0, last, next, rest: this.rest(next, length + 1) });
    }
    ranges.sort((a, b) => a.rest - b.rest);
    for (const { first, last, next } of ranges) {
      for (let codePoint = first; codePoint <= Math.min(last, first + MOST_OF_A_RANGE); codePoint++) {
        yield to(codePoint, next);
      }
    }
  }

  /** Counts the allowed texts, up to `most`. */
  count(most: number): number {
    let count = 0;
    if (most > 0) for (const _ of this.words()) if (++count >= most) break;
    return count;
  }

  /** Tells whether a whole text is allowed. */
  has(text: string): boolean {
    let state = this.empty ? -1 : 0;
    let length = 0;
    for (const char of text) {
      if (state < 0) return false;
      state = this.step(state, length++, codePointOf(char));
    }
    return state >= 0 && this.accepts(state, length);
  }

  /**
   * Returns an automaton that accepts exactly this language, including the bounds on the length. Throws `TooLarge` if
   * it needs too many states or steps.
   */
  asDfa(fuel: Fuel): Dfa {
    if (this.dfa && this.min === 0 && this.max === Number.POSITIVE_INFINITY) return this.dfa;
    const lengths = lengthDfa(this.min, this.max, fuel);
    return this.dfa ? combine(this.dfa, lengths, 'and', fuel) : lengths;
  }
}

/** Describes a text after one more character: the state reached, the text and its length. */
interface Continuation {
  state: number;
  text: string;
  length: number;
}

/** Maximum number of steps of `words`. */
const WORD_STEPS = 4_000;
/** Maximum number of characters of one range that `words` tries: more than a list of different items may have. */
const MOST_OF_A_RANGE = 300;
/** Characters that `words` tries in a text without rules. */
const PLAIN_CHARACTERS: readonly number[] = Array.from({ length: MOST_OF_A_RANGE }, (_, i) =>
  i < 26 ? 0x61 + i : 0xa1 + i,
);

/** Tells whether a code point is in `TEXT`. */
export function isText(codePoint: number): boolean {
  return codePoint >= 0x20
    ? codePoint < 0xd8_00 || (codePoint > 0xdf_ff && codePoint <= 0x10_ff_ff)
    : codePoint === 9 || codePoint === 10 || codePoint === 13;
}

/**
 * Returns, for every state and every n up to `min`, the length of the shortest continuation of at least n characters.
 */
function shortestRests(dfa: Dfa, min: number, fuel: Fuel): Int32Array {
  const { states, next, accepts } = dfa;
  const { classes } = dfa.alphabet;
  if (states * (min + 1) > LIMITS.stringRests)
    throw new TooLarge('with this minLength takes too many steps to compile; ask for less');
  const rests = new Int32Array(states * (min + 1)).fill(-1);
  const after: number[][] = [];
  const before: number[][] = Array.from({ length: states }, () => []);
  const seenFrom = new Int32Array(states).fill(-1);
  for (let s = 0; s < states; s++) {
    const reached: number[] = [];
    for (let at = s * classes; at < (s + 1) * classes; at++) {
      const to = next[at] ?? -1;
      if (to < 0 || seenFrom[to] === s) continue;
      seenFrom[to] = s;
      reached.push(to);
      before[to]?.push(s);
    }
    fuel.spend(classes + (((1 + reached.length) * min) >> 3));
    after.push(reached);
  }
  // n = 0: breadth first, backwards from the accepting states.
  const queue: number[] = [];
  for (let s = 0; s < states; s++) {
    if (accepts[s]) {
      rests[s * (min + 1)] = 0;
      queue.push(s);
    }
  }
  for (const s of queue) {
    for (const from of before[s] ?? []) {
      if ((rests[from * (min + 1)] ?? -1) >= 0) continue;
      rests[from * (min + 1)] = (rests[s * (min + 1)] ?? -1) + 1;
      queue.push(from);
    }
  }
  for (let n = 1; n <= min; n++) {
    for (let s = 0; s < states; s++) {
      let best = -1;
      for (const to of after[s] ?? []) {
        const rest = rests[to * (min + 1) + n - 1] ?? -1;
        if (rest >= 0 && (best < 0 || rest + 1 < best)) best = rest + 1;
      }
      rests[s * (min + 1) + n] = best;
    }
  }
  return rests;
}
