import { LIMITS } from './limits.ts';

/** Something that would be too large or too much work. The message goes on after what it is. */
export class TooLarge extends Error {}

/** Counts work, so that it is bounded whatever a schema says. */
export class Effort {
  private left: number;
  private readonly whole: Effort | undefined;

  /** @param whole counts the same work together with that of others */
  constructor(limit: number = LIMITS.stringSteps, whole?: Effort) {
    this.left = limit;
    this.whole = whole;
  }

  /** Throws `TooLarge` when there is nothing left. */
  spend(steps: number): void {
    this.left -= steps;
    if (this.left < 0) throw new TooLarge('takes too many steps to compile; make it simpler or shorter');
    this.whole?.spend(steps);
  }
}

/** The work of all schemas of one request: as much as that of so many schemas at their limits. */
const SCHEMAS_AT_LIMIT = 10;

/** The work that schemas may take: that of one, or together that of a request. */
export interface SchemaEffort {
  /** Resolving `allOf`, `anyOf` and `oneOf`, and checking `enum` and `const`. */
  resolve: Effort;
  /** Making automata of strings. */
  strings: Effort;
}

/** To be shared by all schemas of one request. */
export function requestEffort(): SchemaEffort {
  return {
    resolve: new Effort(SCHEMAS_AT_LIMIT * LIMITS.resolveSteps),
    strings: new Effort(SCHEMAS_AT_LIMIT * LIMITS.stringSteps),
  };
}

/** For one schema, as part of a request where there is one. */
export function schemaEffort(request?: SchemaEffort): SchemaEffort {
  return {
    resolve: new Effort(LIMITS.resolveSteps, request?.resolve),
    strings: new Effort(LIMITS.stringSteps, request?.strings),
  };
}
