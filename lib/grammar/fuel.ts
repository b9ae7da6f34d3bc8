import { LIMITS } from './limits.ts';

/** Something that would be too large or too much work. The message goes on after what it is. */
export class TooLarge extends Error {}

/** What finding the subschemas that hold together costs, as against one step of a string automaton. */
const RESOLVING = 3;

/** Counts the work of compiling, in steps of about 0.1 µs, so that it is bounded whatever a schema says. */
export class Fuel {
  private left: number;
  private readonly whole: Fuel | undefined;

  /** @param whole counts the same work together with that of others */
  constructor(limit: number = LIMITS.steps, whole?: Fuel) {
    this.left = limit;
    this.whole = whole;
  }

  /** Throws `TooLarge` when there is nothing left. */
  spend(steps: number): void {
    this.left -= steps;
    if (this.left < 0) {
      throw new TooLarge('takes too many steps to compile; use fewer or shorter patterns, branches and enum values');
    }
    this.whole?.spend(steps);
  }

  /** The same for steps of resolving `$ref`, `allOf`, `anyOf`, `oneOf`, `enum` and `const`. */
  resolve(steps: number): void {
    this.spend(RESOLVING * steps);
  }
}

/** To be shared by all schemas of one request, so that many large ones do not add up. */
export function requestFuel(): Fuel {
  return new Fuel(LIMITS.requestSteps);
}
