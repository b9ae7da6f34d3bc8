import { LIMITS } from './limits.ts';

/**
 * Reports that a part of a schema is too large or takes too much work to compile. The message is the end of a sentence;
 * the code that catches the error puts the name of the part in front.
 */
export class TooLarge extends Error {}

/** Reports that compiling needs more steps than `withinSteps` allows: it must be done elsewhere. */
export class Postponed extends Error {}

/** Holds what the schemas of the running work may cost together, or that they cost nothing (`withAccepted`). */
let scope: { left: number } | 'accepted' | undefined;

/**
 * Runs work in which compiling may take this many steps in all, whatever budgets its schemas have.
 *
 * @throws Postponed if it takes more
 */
export function withinSteps<T>(steps: number, work: () => T): T {
  return scoped({ left: steps }, work);
}

/** Runs work whose schemas are known to compile, so that they are not compiled again only to be checked. */
export function withAccepted<T>(work: () => T): T {
  return scoped('accepted', work);
}

/** Tells whether the work that runs now is that of `withAccepted`. */
export function isAccepted(): boolean {
  return scope === 'accepted';
}

/** Runs work in a scope. The work is synchronous, so no other work sees it. */
function scoped<T>(one: typeof scope, work: () => T): T {
  const before = scope;
  scope = one;
  try {
    return work();
  } finally {
    scope = before;
  }
}

/** Cost of one step of resolving subschemas, in steps of building a string automaton. */
const RESOLVING = 3;

/** Bounds the work of compiling one schema, or several on a shared budget. Work is counted in steps of about 1 µs. */
export class Fuel {
  #left: number;
  readonly #whole: Fuel | undefined;

  /**
   * @param limit number of steps
   * @param whole budget shared with other schemas, from which all steps are spent too
   */
  constructor(limit: number = LIMITS.steps, whole?: Fuel) {
    this.#left = limit;
    this.#whole = whole;
  }

  /** Spends steps of building a string automaton. Throws `TooLarge` if fewer are left, here or in the shared budget. */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) {
      throw new TooLarge('takes too many steps to compile; use fewer or shorter patterns, branches and enum values');
    }
    if (this.#whole) this.#whole.spend(steps);
    else if (typeof scope === 'object') {
      scope.left -= steps;
      if (scope.left < 0) throw new Postponed('takes more steps than this thread may spend');
    }
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
