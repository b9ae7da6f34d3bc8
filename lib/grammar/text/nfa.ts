import { TooLarge } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import type { CodePoints } from './code-points.ts';

/**
 * Names the condition of an edge that reads no character: no condition, that the position is the start or the end of
 * the text, or that the rest of the text begins with a match of another pattern, or does not.
 */
export type Assertion = 'none' | 'start' | 'end' | Lookahead;

export interface Lookahead {
  pattern: Pattern;
  negative: boolean;
}

/** Represents a parsed pattern: an automaton, and its states at the beginning and end of a match. */
export interface Pattern {
  nfa: Nfa;
  start: number;
  end: number;
}

/** Describes an edge that reads no character (an epsilon transition). */
interface FreeEdge {
  to: number;
  asks: Assertion;
}

/** Describes a part of an automaton: the states from `from` to before `to`, entered at `start` and left at `end`. */
export interface Fragment {
  from: number;
  to: number;
  start: number;
  end: number;
}

/**
 * Builds a nondeterministic automaton over code points from fragments (K. Thompson, "Regular expression search
 * algorithm", CACM 1968). The states of a fragment are contiguous, so a repetition can copy them. Every method that
 * adds states throws `TooLarge` beyond `LIMITS.patternParts`.
 */
export class Nfa {
  readonly #free: FreeEdge[][] = [];
  /** For each state, the edge that reads one character; null if there is none. */
  readonly reads: ({ set: CodePoints; to: number } | null)[] = [];

  get states(): number {
    return this.#free.length;
  }

  /** Returns the edges of a state that read no character. */
  freeEdges(state: number): readonly FreeEdge[] {
    return this.#free[state] ?? [];
  }

  #state(): number {
    if (this.#free.length >= LIMITS.patternParts) {
      throw new TooLarge(`is longer than ${LIMITS.patternParts} parts once its repeats are written out; repeat less`);
    }
    this.#free.push([]);
    this.reads.push(null);
    return this.#free.length - 1;
  }

  #link(from: number, to: number, asks: Assertion = 'none'): void {
    this.#free[from]?.push({ to, asks });
  }

  /** Adds a fragment that reads nothing; `asks` is the condition for passing it. */
  empty(asks: Assertion = 'none'): Fragment {
    const from = this.#state();
    const end = this.#state();
    this.#link(from, end, asks);
    return { from, to: end + 1, start: from, end };
  }

  /** Adds a fragment that reads one character of a set. */
  set(set: CodePoints): Fragment {
    const from = this.#state();
    const end = this.#state();
    this.reads[from] = { set, to: end };
    return { from, to: end + 1, start: from, end };
  }

  /**
   * Joins parts in sequence; no parts become an empty one. The states of each part must directly follow those of the
   * part before.
   */
  sequence(parts: readonly Fragment[]): Fragment {
    const [first, ...others] = parts;
    if (!first) return this.empty();
    let { end } = first;
    for (const part of others) {
      this.#link(end, part.start);
      end = part.end;
    }
    return { from: first.from, to: this.#free.length, start: first.start, end };
  }

  /** Joins parts as alternatives; no parts become an empty one. They must be the newest fragments, in this order. */
  either(parts: readonly Fragment[]): Fragment {
    const [first] = parts;
    if (!first) return this.empty();
    if (parts.length === 1) return first;
    const start = this.#state();
    const end = this.#state();
    for (const part of parts) {
      this.#link(start, part.start);
      this.#link(part.end, end);
    }
    return { from: first.from, to: this.#free.length, start, end };
  }

  /** Repeats `part` at least `min` and at most `max` times (Infinity: without end). It must be the newest fragment. */
  repeat(part: Fragment, min: number, max: number): Fragment {
    const copies = Math.max(min, max === Number.POSITIVE_INFINITY ? 1 : max);
    if (copies === 0) return { ...this.empty(), from: part.from };
    const parts = [part];
    while (parts.length < copies) parts.push(this.#copy(part));
    const end = this.#state();
    const start = this.#state();
    this.#link(start, part.start);
    if (min === 0) this.#link(start, end);
    for (const [i, copy] of parts.entries()) {
      const following = parts[i + 1];
      if (!following && max === Number.POSITIVE_INFINITY) this.#link(copy.end, copy.start);
      this.#link(copy.end, following ? following.start : end);
      // After `min` copies, the remaining ones can be skipped.
      if (following && i + 1 >= min) this.#link(copy.end, end);
    }
    return { from: part.from, to: this.#free.length, start, end };
  }

  #copy(part: Fragment): Fragment {
    const shift = this.#free.length - part.from;
    for (let i = part.from; i < part.to; i++) {
      const at = this.#state();
      const reads = this.reads[i];
      if (reads) this.reads[at] = { set: reads.set, to: reads.to + shift };
      // Edges out of the part were added by later fragments, and are not copied.
      this.#free[at] = this.freeEdges(i)
        .filter(({ to }) => to < part.to)
        .map(({ to, asks }) => ({ to: to + shift, asks }));
    }
    return { from: part.from + shift, to: part.to + shift, start: part.start + shift, end: part.end + shift };
  }
}
