import type { AssayError } from '../errors.ts';
import type { Fuel } from '../grammar/fuel.ts';
import { pathTo } from '../param-path.ts';
import { issueAt } from './issue.ts';
import type { Finding } from './rules.ts';

/** Tracks one walk over a value: the current path, and the first issue. */
export class Walk {
  /** The error of the first issue so far in document order; null if there is none. */
  issue: AssayError | null = null;
  /** Compile budget that the late rules share; if absent, late rules are skipped. */
  readonly fuel: Fuel | undefined;
  readonly #steps: (string | number)[] = [];
  #depth = 0;

  constructor(fuel?: Fuel) {
    this.fuel = fuel;
  }

  /** The current path, in the syntax of an error's `param`. */
  get path(): string {
    return this.#steps.slice(0, this.#depth).reduce<string>(pathTo, '');
  }

  /** Moves the current path to a member (its name) or an item (its index) of the value there. */
  enter(step: string | number): void {
    this.#steps[this.#depth++] = step;
  }

  /** Moves the current path back to the value that contains the current one. */
  leave(): void {
    this.#depth--;
  }

  /** Notes an issue of the value at the current path, unless one was noted before. */
  note(finding: Finding): void {
    this.issue ??= issueAt(this.path, finding);
  }

  /**
   * Throws an issue of the value at the current path as an `AssayError` at once. Used for unknown fields and missing or
   * conflicting input, which are reported before any invalid value (docs/interface.md, D-15).
   */
  refuse(finding: Finding): never {
    throw issueAt(this.path, finding);
  }
}
