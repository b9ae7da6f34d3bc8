import { AssayError } from '../../lib/errors.ts';
import type { FromEngine, Reply, Work } from '../protocol/messages.ts';

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
  /** Called once, when nothing of the request waits for its caller or on the way to the process; `answered`: it came to its end. */
  settled(answered: boolean): void;
}

/** How much longer than the engine the server waits: the engine's own answer says more. */
const GRACE_MS = 2_000;
const LEFT = 'The caller left before the answer was ready.';

/** One request in flight, as the server holds it. */
export class Call {
  readonly #wire: CallWire;
  readonly #options: CallOptions;
  readonly #prepared = Promise.withResolvers<number>();
  #replies: Reply[] = [];
  #wake: (() => void) | null = null;
  #failure: AssayError | null = null;
  #done = false;
  /** The process has been sent the work and has not reacted to it: all of its bytes may still wait to be read. */
  #unread = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = () => this.fail(new AssayError('internal_error', LEFT), true);

  constructor(wire: CallWire, options: CallOptions) {
    this.#wire = wire;
    this.#options = options;
    this.#prepared.promise.catch(() => {});
  }

  /** The prompt's tokens, once everything about the request is checked. Throws what is wrong with it. */
  prepare(): Promise<number> {
    if (this.#options.signal.aborted) this.fail(new AssayError('internal_error', LEFT), false);
    else {
      this.#options.signal.addEventListener('abort', this.#onAbort, { once: true });
      this.#setTimer();
      this.#unread = true;
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

  onMessage(message: FromEngine): void {
    this.#read();
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

  /** Ends the call with an error. `tell`: the process has the request, or will read it, and has to forget it. */
  fail(error: AssayError, tell: boolean): void {
    if (!tell) this.#read();
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
    if (!this.#unread) this.#wire.settled(answered);
  }

  /** The process has read the work, or never will: only now has a caller who left meanwhile nothing there any more. */
  #read(): void {
    if (!this.#unread) return;
    this.#unread = false;
    if (this.#done) this.#wire.settled(false);
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
