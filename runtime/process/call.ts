import { AssayError } from '../../lib/errors.ts';
import type { FromEngine, Work } from './messages.ts';

/** What the engine process says about one request, between `prepared` and the end. */
export type Reply = Extract<FromEngine, { type: 'queued' | 'reasoning' | 'content' | 'answers' | 'finished' }>;

export interface CallOptions {
  work: Work;
  /** Aborted when the caller leaves: the request is taken out of the engine within one step. */
  signal: AbortSignal;
  /** Milliseconds that the request may take from `run` on. */
  timeoutMs: number;
}

export interface CallWire {
  id: string;
  send(message: { type: 'prepare'; work: Work } | { type: 'run'; timeoutMs: number } | { type: 'cancel' }): void;
  /** Called once, when the request needs the process no more; `answered`: it came to its end. */
  settled(answered: boolean): void;
}

/** How much longer than the engine the server waits: the engine's own answer says more. */
const GRACE_MS = 2_000;

/** One request in flight, as the server holds it. */
export class Call {
  readonly #wire: CallWire;
  readonly #options: CallOptions;
  readonly #prepared = Promise.withResolvers<number>();
  #replies: Reply[] = [];
  #wake: (() => void) | null = null;
  #failure: AssayError | null = null;
  #done = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = () =>
    this.fail(new AssayError('internal_error', 'The caller left before the answer was ready.'), true);

  constructor(wire: CallWire, options: CallOptions) {
    this.#wire = wire;
    this.#options = options;
    this.#prepared.promise.catch(() => {});
  }

  /** The prompt's tokens, once everything about the request is checked. Throws what is wrong with it. */
  prepare(): Promise<number> {
    if (this.#options.signal.aborted) this.#onAbort();
    else {
      this.#options.signal.addEventListener('abort', this.#onAbort, { once: true });
      this.#setTimer();
      this.#wire.send({ type: 'prepare', work: this.#options.work });
    }
    return this.#prepared.promise;
  }

  /** Queues the request and gives what comes of it; the last one is `finished`. Leaving the loop early cancels. */
  async *run(): AsyncGenerator<Reply> {
    try {
      if (this.#failure) throw this.#failure;
      this.#setTimer();
      this.#wire.send({ type: 'run', timeoutMs: this.#options.timeoutMs });
      for (;;) {
        for (let reply = this.#replies.shift(); reply; reply = this.#replies.shift()) {
          yield reply;
          if (reply.type === 'finished') return;
        }
        if (this.#failure) throw this.#failure;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.cancel();
    }
  }

  /** Lets go of the request; the engine frees what it holds. Does nothing when it has ended. */
  cancel(): void {
    if (!this.#done) this.fail(new AssayError('internal_error', 'The request was cancelled.'), true);
  }

  hear(message: FromEngine): void {
    if (this.#done) return;
    switch (message.type) {
      case 'prepared':
        this.#prepared.resolve(message.promptTokens);
        return;
      case 'failed': {
        const { code, message: text, ...details } = message.error;
        this.fail(new AssayError(code, text, { ...details, cause: message.detail }), false);
        return;
      }
      case 'queued':
      case 'reasoning':
      case 'content':
      case 'answers':
      case 'finished':
        this.#replies.push(message);
        if (message.type === 'finished') this.#settle(true);
        this.#wake?.();
        return;
      default:
    }
  }

  /** Ends the call with an error. `tell`: the process is still there and has to forget the request. */
  fail(error: AssayError, tell: boolean): void {
    if (this.#done) return;
    this.#failure = error;
    if (tell) this.#wire.send({ type: 'cancel' });
    this.#settle(false);
    this.#prepared.reject(error);
    this.#wake?.();
  }

  #settle(answered: boolean): void {
    this.#done = true;
    clearTimeout(this.#timer);
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#wire.settled(answered);
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    const message = 'The answer was not ready in time; try again, or ask for less at once.';
    this.#timer = setTimeout(
      () => this.fail(new AssayError('timeout', message), true),
      this.#options.timeoutMs + GRACE_MS,
    );
  }
}
