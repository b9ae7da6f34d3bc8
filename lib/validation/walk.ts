import type { AssayError } from '../errors.ts';
import type { Fuel } from '../grammar/fuel.ts';
import { pathTo } from '../param-path.ts';
import { issueAt } from './issue.ts';
import type { Finding } from './rules.ts';

/** Tracks one walk over a value: the current path, and the first issue. */
export class Walk {
  /** The first issue in document order. */
  issue: AssayError | null = null;
  /** Budget for compiling grammars, shared by the rules that run after all others; if absent, those do not run. */
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

  /** Notes an issue; the first one counts. */
  note(finding: Finding): void {
    this.issue ??= issueAt(this.path, finding);
  }

  /**
   * Throws the issue at once: an unknown field or missing input is reported before any invalid value
   * (docs/interface.md, D-15).
   */
  refuse(finding: Finding): never {
    throw issueAt(this.path, finding);
  }
}
