import { Worker } from 'node:worker_threads';
import type { BodyChecker } from '../../handlers/context.ts';
import { AssayError, type ErrorCode } from '../../lib/errors.ts';
import { FairShares } from '../../lib/limits/fair-shares.ts';

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

interface Waiting extends SentBody {
  caller: string;
  signal: AbortSignal;
  settle(answer: CheckedBody | Error): void;
}

/**
 * Checks bodies whose schemas take long to compile in a thread of its own, one at a time, of the caller first that has
 * used least of it. The thread starts with the first body.
 */
export class BodyThread implements BodyChecker {
  readonly #shares = new FairShares();
  #waiting: Waiting[] = [];
  #current: { waiting: Waiting; begin: number } | undefined;
  #worker: Worker | undefined;
  #closed = false;

  async check({ path, text }: SentBody, caller: string, signal: AbortSignal): Promise<void> {
    const own = this.#waiting.filter((one) => one.caller === caller).length;
    if (this.#waiting.length >= MOST_WAITING || own >= MOST_OF_CALLER) {
      throw new AssayError(
        'overloaded',
        'Too many requests with large schemas are waiting. Try again after the seconds in Retry-After.',
        { retryAfterSeconds: 2 },
      );
    }
    const answered = new Promise<CheckedBody>((resolve, reject) => {
      const settle = (answer: CheckedBody | Error) => (answer instanceof Error ? reject(answer) : resolve(answer));
      this.#waiting.push({ path, text, caller, signal, settle });
    });
    this.#shares.add(caller, performance.now());
    this.#serve();
    try {
      const { refusal } = await answered;
      if (refusal) throw new AssayError(refusal.code, refusal.message, refusal.param ? { param: refusal.param } : {});
    } finally {
      this.#shares.remove(caller, performance.now());
    }
  }

  #serve(): void {
    if (this.#current) return;
    if (this.#closed) for (const { settle } of this.#waiting.splice(0)) settle(unchecked());
    for (const { signal, settle } of this.#waiting.filter((one) => one.signal.aborted)) settle(signal.reason as Error);
    this.#waiting = this.#waiting.filter((one) => !one.signal.aborted);
    const next = this.#shares.takeNext(this.#waiting);
    if (!next) return;
    this.#current = { waiting: next, begin: performance.now() };
    this.#worker ??= this.#start();
    const { path, text } = next;
    this.#worker.postMessage({ path, text } satisfies SentBody);
  }

  #start(): Worker {
    const worker = new Worker(ENTRY, { resourceLimits: HEAP_MB, env: {}, execArgv: [] });
    worker.unref();
    worker.on('message', (answer: CheckedBody) => this.#answered(answer));
    const failed = (cause: unknown) => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#answered(unchecked(cause));
    };
    worker.on('error', failed);
    worker.on('exit', failed);
    return worker;
  }

  #answered(answer: CheckedBody | Error): void {
    const current = this.#current;
    this.#current = undefined;
    if (current) {
      this.#shares.charge(current.waiting.caller, performance.now() - current.begin);
      current.waiting.settle(answer);
    }
    this.#serve();
  }

  /** Ends the thread; bodies that wait fail. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#worker?.terminate();
    this.#serve();
  }
}

function unchecked(cause?: unknown): AssayError {
  return new AssayError('internal_error', 'The schemas of the request could not be checked. Try again.', { cause });
}
