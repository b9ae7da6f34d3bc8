import type { EngineProcess } from '../engine-process.ts';
import { linkTargets } from '../isolation/process-needs.ts';
import { compileInChild } from './compile-in-child.ts';
import { compileLimits } from './model-limits.ts';
import { childOptions, type ProcessOptions } from './process-options.ts';

/** Runs compiles, each in its own process, and can abort them all when the server stops. */
export class Compiles {
  readonly #options: ProcessOptions;
  readonly #running = new Set<AbortController>();

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  /** Compiles a model in a new process (`EngineProcess.compile`). */
  async run(...[spec, call]: Parameters<EngineProcess['compile']>): ReturnType<EngineProcess['compile']> {
    const closing = new AbortController();
    this.#running.add(closing);
    const signal = call?.signal ? AbortSignal.any([call.signal, closing.signal]) : closing.signal;
    try {
      const limits = await compileLimits(spec);
      const read = [spec.source, ...(await linkTargets(spec.source))];
      const options = childOptions(this.#options, limits, spec, { read, write: [spec.target] });
      return await compileInChild(options, spec, { ...call, signal });
    } finally {
      this.#running.delete(closing);
    }
  }

  /** Aborts all compiles that are under way. */
  abort(): void {
    for (const compile of this.#running) compile.abort();
  }
}
