import type { AssayError } from '../errors.ts';
import type { Fuel } from '../grammar/fuel.ts';
import { pathTo } from '../param-path.ts';
import { issueAt } from './issue.ts';
import type { Finding } from './rules.ts';

/** Tracks one walk over a value: the current path, and the first issue. */
export class Walk {
  /** The first issue in document order. */
  issue: AssayError | null = null;
  /** Compile budget that the late rules share; if absent, late rules are skipped. */
  readonly fuel: Fuel | undefined;
  readonly #steps: (string | number)[] = [];
  #depth = 0;

  constructor(fuel?: Fuel) {
    this.fuel = fuel;
  }

  get path(): string {
    return this.#steps.slice(0, this.#depth).reduce<string>(pathTo, '');
  }

  enter(step: string | number): void {
    this.#steps[this.#depth++] = step;
  }

  leave(): void {
    this.#depth--;
  }

  /** Notes an issue, unless one was noted before. */
  note(finding: Finding): void {
    this.issue ??= issueAt(this.path, finding);
  }

  /**
   * Throws the issue at once. Used for unknown fields and missing or conflicting input, which are reported before any
   * invalid value (docs/interface.md, D-15).
   */
  refuse(finding: Finding): never {
    throw issueAt(this.path, finding);
  }
}
