import { TooLarge } from '../fuel.ts';
import { LIMITS } from '../limits.ts';
import type { CodePoints } from './code-points.ts';

/** The condition of an edge that reads no character: none, the beginning of the text, or its end. */
export type Assertion = 'none' | 'start' | 'end';

/**
 * A fragment of an automaton: the states `from` up to `to`, entered at `start`, left at `end`. Its edges stay inside.
 */
export interface Fragment {
  from: number;
  to: number;
  start: number;
  end: number;
}

/**
 * Builds a nondeterministic automaton over code points from fragments (K. Thompson, "Regular expression search
 * algorithm", CACM 1968). Fragments are contiguous, so that a repetition can copy them.
 */
export class Nfa {
  /** For each state, the edges that read nothing. */
  readonly free: { to: number; asks: Assertion }[][] = [];
  /** For each state, the edge that reads one character. */
  readonly reads: ({ set: CodePoints; to: number } | null)[] = [];

  private state(): number {
    if (this.free.length >= LIMITS.patternParts) {
      throw new TooLarge(`is longer than ${LIMITS.patternParts} parts once its repeats are written out; repeat less`);
    }
    this.free.push([]);
    this.reads.push(null);
    return this.free.length - 1;
  }

  private link(from: number, to: number, asks: Assertion = 'none'): void {
    this.free[from]!.push({ to, asks });
  }

  empty(asks: Assertion = 'none'): Fragment {
    const from = this.state();
    const end = this.state();
    this.link(from, end, asks);
    return { from, to: end + 1, start: from, end };
  }

  set(set: CodePoints): Fragment {
    const from = this.state();
    const end = this.state();
    this.reads[from] = { set, to: end };
    return { from, to: end + 1, start: from, end };
  }

  /** Joins parts in sequence. They must be adjacent in memory too. */
  sequence(parts: readonly Fragment[]): Fragment {
    if (parts.length === 0) return this.empty();
    for (let i = 1; i < parts.length; i++) this.link(parts[i - 1]!.end, parts[i]!.start);
    return { from: parts[0]!.from, to: this.free.length, start: parts[0]!.start, end: parts.at(-1)!.end };
  }

  either(parts: readonly Fragment[]): Fragment {
    if (parts.length === 1) return parts[0]!;
    const start = this.state();
    const end = this.state();
    for (const part of parts) {
      this.link(start, part.start);
      this.link(part.end, end);
    }
    return { from: parts[0]!.from, to: this.free.length, start, end };
  }

  /** Repeats `part` at least `min` and at most `max` times (Infinity: without end). It must be the newest fragment. */
  repeat(part: Fragment, min: number, max: number): Fragment {
    const copies = Math.max(min, max === Number.POSITIVE_INFINITY ? 1 : max);
    if (copies === 0) return { ...this.empty(), from: part.from };
    const parts = [part];
    while (parts.length < copies) parts.push(this.copy(part));
    const end = this.state();
    if (max === Number.POSITIVE_INFINITY) {
      const last = parts.at(-1)!;
      this.link(last.end, last.start);
    }
    for (let i = 1; i < parts.length; i++) this.link(parts[i - 1]!.end, parts[i]!.start);
    this.link(parts.at(-1)!.end, end);
    // An optional copy can be skipped, up to the end.
    const start = this.state();
    this.link(start, parts[0]!.start);
    if (min === 0) this.link(start, end);
    for (let i = Math.max(1, min); i < parts.length; i++) this.link(parts[i - 1]!.end, end);
    return { from: part.from, to: this.free.length, start, end };
  }

  private copy(part: Fragment): Fragment {
    const shift = this.free.length - part.from;
    for (let i = part.from; i < part.to; i++) {
      const at = this.state();
      const reads = this.reads[i]!;
      this.reads[at] = reads && { set: reads.set, to: reads.to + shift };
      // Edges out of the part were added by later fragments, and are not copied.
      this.free[at] = this.free[i]!.filter(({ to }) => to < part.to).map(({ to, asks }) => ({ to: to + shift, asks }));
    }
    return { from: part.from + shift, to: part.to + shift, start: part.start + shift, end: part.end + shift };
  }
}
