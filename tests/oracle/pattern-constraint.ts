import type { Constraint } from '../../lib/grammar/constraint.ts';

/** A step of a pattern: forced tokens, or a choice among some, `times` times. */
export type PatternStep = { forced: readonly number[] } | { among: readonly number[]; times: number };

/** A small constraint for engine tests, so that they do not depend on grammars. */
export class PatternConstraint implements Constraint {
  readonly #steps: readonly PatternStep[];
  readonly #said: number[];
  #step: number;
  #times: number;

  constructor(steps: readonly PatternStep[], step = 0, times = 0, said: readonly number[] = []) {
    this.#steps = steps.filter((one) => ('forced' in one ? one.forced.length > 0 : one.times > 0));
    this.#step = step;
    this.#times = times;
    this.#said = [...said];
  }

  takeForced(): number[] {
    const taken: number[] = [];
    for (;;) {
      const step = this.#steps[this.#step];
      if (!step || !('forced' in step)) break;
      taken.push(...step.forced);
      this.#step++;
    }
    this.#said.push(...taken);
    return taken;
  }

  mask(into: Uint32Array): void {
    into.fill(0);
    const step = this.#steps[this.#step];
    if (!step || 'forced' in step) throw new Error('asked for a choice where there is none');
    for (const token of step.among) into[token >> 5]! |= 1 << (token & 31);
  }

  accepts(token: number): boolean {
    const step = this.#steps[this.#step];
    return step !== undefined && !('forced' in step) && step.among.includes(token);
  }

  expected(): null {
    return null;
  }

  accept(token: number): void {
    const step = this.#steps[this.#step];
    if (!step || 'forced' in step || !step.among.includes(token)) throw new Error(`token ${token} is not allowed`);
    this.#said.push(token);
    this.#times++;
    if (this.#times === step.times) {
      this.#step++;
      this.#times = 0;
    }
  }

  get complete(): boolean {
    return this.#step >= this.#steps.length;
  }

  text(): string {
    return this.#said.join(' ');
  }

  get length(): number {
    return this.text().length;
  }

  closed(): string {
    return this.complete ? this.text() : `${this.text()} (cut)`;
  }

  fork(): PatternConstraint {
    return new PatternConstraint(this.#steps, this.#step, this.#times, this.#said);
  }
}
