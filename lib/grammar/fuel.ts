import { LIMITS } from './limits.ts';

/**
 * Reports something that would be too large or too much work. The message continues a sentence that begins with its
 * name.
 */
export class TooLarge extends Error {}

/** The cost of finding the subschemas that hold together, in steps of a string automaton. */
const RESOLVING = 3;

/** Counts the work of compiling in steps of about 0.1 µs, so that it is bounded for any schema. */
export class Fuel {
  private left: number;
  private readonly whole: Fuel | undefined;

  /** @param whole counts the same work together with that of other schemas */
  constructor(limit: number = LIMITS.steps, whole?: Fuel) {
    this.left = limit;
    this.whole = whole;
  }

  /** Spends steps of string automata. Throws `TooLarge` when none are left. */
  spend(steps: number): void {
    this.left -= steps;
    if (this.left < 0) {
      throw new TooLarge('takes too many steps to compile; use fewer or shorter patterns, branches and enum values');
    }
    this.whole?.spend(steps);
  }

  /** Spends steps of resolving `$ref`, `allOf`, `anyOf`, `oneOf`, `enum` and `const`. */
  resolve(steps: number): void {
    this.spend(RESOLVING * steps);
  }
}

/** Returns a budget that several schemas share, so that many large ones do not add up. */
export function sharedFuel(): Fuel {
  return new Fuel(LIMITS.sharedSteps);
}
