import { AssayError } from '../../../lib/errors.ts';
import type { CompileProgress, CompileReport, CompileSpec, ToEngine } from '../../protocol/messages.ts';
import type { GgufTexts } from '../../store/import-gguf.ts';
import { linkTargets } from '../isolation/isolation.ts';
import { type EngineAnswer, EngineChild, type EngineChildNeeds, type ProcessOptions } from './engine-child.ts';
import { compileLimits, type ModelLimits } from './model-limits.ts';

const AFTER_DEATH =
  'Try again. If that fails too, load another model, or other files of this one; the log has the details.';
const CANCELLED = 'The compile was cancelled. Load or compile the model again to start over.';

const ID = 'compile';
/** Limits for reading the metadata of a GGUF file, of which at most 256 MiB are read (`read-gguf.ts`). */
const DESCRIBE_LIMITS: ModelLimits = { openMs: 60_000, memoryBytes: 4 * 2 ** 30, device: 'CPU' };

export interface CompileCall {
  signal?: AbortSignal;
  onProgress?(progress: CompileProgress): void;
}

/** Runs compiles, each in its own process, and can abort them all when the server stops. */
export class Compiles {
  readonly #options: ProcessOptions;
  readonly #running = new Set<AbortController>();

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  /**
   * Compiles a model in a new process, which has ended when the promise settles. Throws the error that the process
   * reports, and `engine_failed` if it dies or the call is aborted, which kills it; the caller then removes
   * `spec.target`. The caller must also copy the text files (tokenizer, template, configuration) that a load reads from
   * that folder.
   */
  async compile(spec: CompileSpec, call: CompileCall = {}): Promise<CompileReport> {
    const needs = async () => ({
      limits: await compileLimits(spec),
      read: [spec.source, ...(await linkTargets(spec.source))],
      write: [spec.target],
      ...(spec.plugin ? { plugin: spec.plugin } : {}),
    });
    const message = await this.#ask({ type: 'compile', id: ID, spec }, needs, call);
    if (message.type !== 'compiled') throw new Error(`a compile ended with the message ${message.type}`);
    return message.report;
  }

  /** Makes text files from the metadata of a GGUF file in a new process. Rejects as `compile` does. */
  async describe(file: string): Promise<GgufTexts> {
    const needs = async () => ({ limits: DESCRIBE_LIMITS, read: [file], write: [] });
    const message = await this.#ask({ type: 'describe', id: ID, file }, needs, {});
    if (message.type !== 'described') throw new Error(`a description ended with the message ${message.type}`);
    return message.texts;
  }

  /** Sends a message to a new process, and returns the one that it answers with. */
  async #ask(
    asked: ToEngine,
    needsOf: () => Promise<EngineChildNeeds>,
    { signal, onProgress }: CompileCall,
  ): Promise<EngineAnswer> {
    const gone = Promise.withResolvers<void>();
    const closing = new AbortController();
    this.#running.add(closing);
    const ending = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
    let child: EngineChild | undefined;
    const abort = () => child?.kill('was cancelled');
    ending.addEventListener('abort', abort, { once: true });
    try {
      const needs = await needsOf();
      if (ending.aborted) throw new AssayError('engine_failed', CANCELLED);
      child = new EngineChild(this.#options, needs, {
        message(message) {
          if (message.type === 'progress')
            onProgress?.({ step: message.step, done: message.done, total: message.total });
        },
        exit: () => gone.resolve(),
      });
      return await child.ask(asked, (reason) =>
        ending.aborted ? CANCELLED : `The compile process ${reason}. ${AFTER_DEATH}`,
      );
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
