import type { AssayError } from '../errors.ts';
import type { Fuel } from '../grammar/fuel.ts';
import { pathTo } from '../param-path.ts';
import { issueAt } from './issue.ts';
import type { Finding } from './rules.ts';

/** One walk over a value: where it stands, and the first bad value it met. */
export class Walk {
  /** In document order. */
  issue: AssayError | null = null;
  /** What the late rules may take together; absent: they are not asked. */
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

  /** Notes a bad value; the first one counts. */
  note(finding: Finding): void {
    this.issue ??= issueAt(this.path, finding);
  }

  /** Ends the walk: an unknown field, or input that is missing, is told before any value (open-points.md, "Order of checks"). */
  refuse(finding: Finding): never {
    throw issueAt(this.path, finding);
  }
}
