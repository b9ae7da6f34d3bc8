import { LIMITS } from './limits.ts';

/**
 * Reports that a part of a schema is too large or takes too much work to compile. The message is the end of a sentence;
 * the code that catches the error puts the name of the part in front.
 */
export class TooLarge extends Error {}

/** Cost of one step of resolving subschemas, in steps of building a string automaton. */
const RESOLVING = 3;

/** Bounds the work of compiling one schema, or several on a shared budget. Work is counted in steps of about 0.1 µs. */
export class Fuel {
  private left: number;
  private readonly whole: Fuel | undefined;

  /**
   * @param limit number of steps
   * @param whole budget shared with other schemas, from which all steps are spent too
   */
  constructor(limit: number = LIMITS.steps, whole?: Fuel) {
    this.left = limit;
    this.whole = whole;
  }

  /** Spends steps of building a string automaton. Throws `TooLarge` if fewer are left, here or in the shared budget. */
  spend(steps: number): void {
    this.left -= steps;
    if (this.left < 0) {
      throw new TooLarge('takes too many steps to compile; use fewer or shorter patterns, branches and enum values');
    }
    this.whole?.spend(steps);
  }

  /**
   * Spends steps of resolving `$ref`, `allOf`, `anyOf`, `oneOf`, `enum` and `const`; each costs three of those of
   * `spend`. Throws `TooLarge` if fewer are left.
   */
  resolve(steps: number): void {
    this.spend(RESOLVING * steps);
  }
}

/** Returns a budget that bounds the total work of compiling several schemas. */
export function sharedFuel(): Fuel {
  return new Fuel(LIMITS.sharedSteps);
}
