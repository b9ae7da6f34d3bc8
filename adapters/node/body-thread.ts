import { Worker } from 'node:worker_threads';
import type { BodyChecker } from '../../handlers/context.ts';
import { AssayError, type ErrorCode } from '../../lib/errors.ts';
import { FairTurns } from '../../lib/limits/fair-turns.ts';

/** Holds a body for the thread to check. Every body gets one answer. */
export interface SentBody {
  path: string;
  text: string;
}

/** Holds the answer: nothing, if the body is right. */
export interface CheckedBody {
  refusal?: { code: ErrorCode; message: string; param?: string };
}

/** Bodies that may wait, of all callers and of one. Their texts count in the budget of bodies, too. */
const MOST_WAITING = 256;
const MOST_OF_CALLER = 64;
/** A schema takes at most 64 MB to compile (`lib/grammar/limits.ts`); a body has several. */
const HEAP_MB = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 };

const ENTRY = new URL(`./body-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/**
 * Checks bodies whose schemas take long to compile in a thread of its own, one at a time, of the caller first that has
 * used least of it. The thread starts with the first body.
 */
export class BodyThread implements BodyChecker {
  readonly #turns = new FairTurns();
  #asked: PromiseWithResolvers<CheckedBody> | undefined;
  #worker: Worker | undefined;
  #closed = false;

  async check(body: SentBody, caller: string, signal: AbortSignal): Promise<void> {
    if (this.#turns.waiting() >= MOST_WAITING || this.#turns.waiting(caller) >= MOST_OF_CALLER) {
      throw new AssayError(
        'overloaded',
        'Too many requests with large schemas are waiting. Try again after the seconds in Retry-After.',
        { retryAfterSeconds: 2 },
      );
    }
    const { refusal } = await this.#turns.run(caller, () => this.#ask(body), signal);
    if (refusal) throw new AssayError(refusal.code, refusal.message, refusal.param ? { param: refusal.param } : {});
  }

  #ask({ path, text }: SentBody): Promise<CheckedBody> {
    if (this.#closed) throw unchecked();
    this.#asked = Promise.withResolvers();
    this.#worker ??= this.#start();
    this.#worker.postMessage({ path, text } satisfies SentBody);
    return this.#asked.promise;
  }

  #start(): Worker {
    const worker = new Worker(ENTRY, { resourceLimits: HEAP_MB, env: {}, execArgv: [] });
    worker.unref();
    worker.on('message', (answer: CheckedBody) => this.#asked?.resolve(answer));
    const failed = (cause: unknown) => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#asked?.reject(unchecked(cause));
    };
    worker.on('error', failed);
    worker.on('exit', failed);
    return worker;
  }

  /** Ends the thread; bodies that wait fail. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#worker?.terminate();
  }
}

function unchecked(cause?: unknown): AssayError {
  return new AssayError('internal_error', 'The schemas of the request could not be checked. Try again.', { cause });
}
