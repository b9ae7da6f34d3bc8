import { AssayError } from '../../../lib/errors.ts';
import type { CompileReport } from '../../protocol/messages.ts';
import type { EngineProcess } from '../engine-process.ts';
import { linkTargets } from '../isolation/process-needs.ts';
import { EngineChild, type ProcessOptions } from './engine-child.ts';
import { compileLimits } from './model-limits.ts';

const AFTER_DEATH =
  'Try again. If that fails too, load another model, or other files of this one; the log has the details.';
const CANCELLED = 'The compile was cancelled. Load or compile the model again to start over.';

/** Runs compiles, each in its own process, and can abort them all when the server stops. */
export class Compiles {
  readonly #options: ProcessOptions;
  readonly #running = new Set<AbortController>();

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  /**
   * Compiles a model in a new process (`EngineProcess.compile`), which has ended when the promise settles. Throws the
   * error that the process reports, and `engine_failed` if it dies or the call is aborted, which kills it.
   */
  async run(...[spec, { signal, onProgress } = {}]: Parameters<EngineProcess['compile']>): Promise<CompileReport> {
    const done = Promise.withResolvers<CompileReport>();
    const gone = Promise.withResolvers<void>();
    done.promise.catch(() => undefined);
    const closing = new AbortController();
    this.#running.add(closing);
    const ending = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
    let child: EngineChild | undefined;
    const abort = () => {
      done.reject(new AssayError('engine_failed', CANCELLED));
      child?.kill('was cancelled');
    };
    ending.addEventListener('abort', abort, { once: true });
    try {
      const limits = await compileLimits(spec);
      const read = [spec.source, ...(await linkTargets(spec.source))];
      if (ending.aborted) throw new AssayError('engine_failed', CANCELLED);
      const needs = { limits, read, write: [spec.target], ...(spec.plugin ? { plugin: spec.plugin } : {}) };
      child = new EngineChild(this.#options, needs, {
        message(message) {
          if (message.type === 'progress')
            onProgress?.({ step: message.step, done: message.done, total: message.total });
          else if (message.type === 'compiled') done.resolve(message.report);
          else if (message.type === 'failed') {
            done.reject(new AssayError(message.error.code, message.error.message, { cause: message.detail }));
          }
        },
        exit(reason) {
          done.reject(new AssayError('engine_failed', `The compile process ${reason}. ${AFTER_DEATH}`));
          gone.resolve();
        },
      });
      child.send({ type: 'compile', id: 'compile', spec });
      return await done.promise;
    } finally {
      ending.removeEventListener('abort', abort);
      this.#running.delete(closing);
      child?.kill('has done its work');
      // The caller moves or removes the files, which the process closes only when it ends.
      if (child) await gone.promise;
    }
  }

  /** Aborts all compiles that are under way. */
  abort(): void {
    for (const compile of this.#running) compile.abort();
  }
}
