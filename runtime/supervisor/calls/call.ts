import type { Priority } from '../../../lib/backend.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { CallerFields, FromEngine, PreparedMedia, Reply, WantedMedia, Work } from '../../protocol/messages.ts';

export interface CallOptions {
  work: Work;
  /** Scheduling priority; absent: `interactive`. */
  priority?: Priority;
  /** Absent: a caller without a key. */
  caller?: CallerFields;
  /** Opens and decodes the images or audio of the request. Absent: `work` is sent as it is, without opened files. */
  media?: CallMedia;
  /** Aborts when the caller disconnects; the engine then drops the request within one step. */
  signal: AbortSignal;
  /** Timeout of `Call.prepare`, and again of `Call.run`, in milliseconds. The call fails `GRACE_MS` after it. */
  timeoutMs: number;
}

/** Provides the images or the audio of one request. The signals abort when the call ends. */
export interface CallMedia {
  /**
   * Returns a copy of the request in which each file is replaced by its hash and size (`MediaPart.opened`). Throws
   * `invalid_value` if a file cannot be opened, and the signal's reason if it aborts.
   */
  open(work: Work, signal: AbortSignal): Promise<Work>;
  /**
   * Decodes the files that the engine asks for, and returns them in the same order. Throws `invalid_value` if one
   * cannot be decoded, `engine_failed` if `open` got no such file, and the signal's reason if it aborts.
   */
  prepare(wanted: readonly WantedMedia[], signal: AbortSignal): Promise<PreparedMedia[]>;
}

export interface CallWire {
  id: string;
  /**
   * Sends work, long work in parts when it is its caller's turn. Sends no more of it once the signal aborts.
   *
   * @param sending called just before the work, or a part of it, is sent
   */
  sendWork(
    message:
      | ({ type: 'prepare'; work: Work; priority?: Priority } & CallerFields)
      | { type: 'run'; timeoutMs: number; media?: PreparedMedia[] },
    sending: () => void,
    signal: AbortSignal,
  ): void;
  sendCancel(): void;
  /** Receives the number of prompt tokens once the engine process has counted them. */
  counted(promptTokens: number): void;
  /**
   * Receives the end of the call, once, when it reaches the state `settled`.
   *
   * @param answered true if the caller got the whole answer
   */
  settled(answered: boolean): void;
}

/**
 * States of a request:
 * - `new`: not sent to the engine process yet
 * - `sent`: sent, but the engine process may not have read it yet
 * - `read`: the engine process has read it
 * - `abandoned`: over for the caller, but the engine process may not have read it yet
 * - `settled`: over on both sides
 */
type CallState = 'new' | 'sent' | 'read' | 'abandoned' | 'settled';

/**
 * States how far the engine process has come with a request, for the error if that process dies. The process does not
 * report when it takes a request out of its queue.
 */
const PROGRESS = {
  unsent: 'This request had not reached it.',
  checking: 'It had not finished checking this request.',
  checked: 'It had checked this request, but not begun to answer it.',
  queued: 'This request was in its queue or being answered.',
  answering: 'It was answering this request.',
} as const;

/** Milliseconds that the server waits beyond the timeout for the engine's own error, which says more. */
const GRACE_MS = 2_000;
const LEFT = 'The caller disconnected before the answer was ready.';

/** Tracks one request on the server's side, from sending it to the engine process to its end. */
export class EngineCall {
  readonly #wire: CallWire;
  readonly #options: CallOptions;
  readonly #prepared = Promise.withResolvers<number>();
  /** Aborts when the call ends, and thus stops the decoding of its media. */
  readonly #over = new AbortController();
  #replies: Reply[] = [];
  #wake: (() => void) | null = null;
  #failure: AssayError | null = null;
  #state: CallState = 'new';
  #progress: keyof typeof PROGRESS = 'unsent';
  #timer: NodeJS.Timeout | undefined;
  #wanted: readonly WantedMedia[] = [];
  readonly #onAbort = () => this.fail(new AssayError('internal_error', LEFT), { cancel: true });

  constructor(wire: CallWire, options: CallOptions) {
    this.#wire = wire;
    this.#options = options;
    this.#prepared.promise.catch(() => {});
  }

  /**
   * Sentence about the progress of the request, in which "it" is the engine process. Must follow a sentence that names
   * the process.
   */
  get progress(): string {
    return PROGRESS[this.#progress];
  }

  /**
   * Opens the request's media, then sends the request to the engine process. Resolves to the number of prompt tokens
   * once the request has passed all checks. Rejects with the error that refuses it, `timeout`, `engine_failed` if the
   * process dies, or `internal_error` if the caller disconnects or `cancel` is called.
   */
  prepare(): Promise<number> {
    if (this.#options.signal.aborted) this.fail(new AssayError('internal_error', LEFT), { cancel: false });
    else {
      this.#options.signal.addEventListener('abort', this.#onAbort, { once: true });
      this.#setTimer();
      const { media, work } = this.#options;
      if (media)
        media.open(work, this.#over.signal).then(
          (opened) => this.#sendWork(opened),
          (error) => this.fail(error, { cancel: false }),
        );
      else this.#sendWork(work);
    }
    return this.#prepared.promise;
  }

  #sendWork(work: Work): void {
    if (this.#ended) return;
    const { priority, caller } = this.#options;
    const sending = () => {
      this.#state = 'sent';
      this.#progress = 'checking';
    };
    this.#wire.sendWork(
      { type: 'prepare', work, ...(priority ? { priority } : {}), ...caller },
      sending,
      this.#over.signal,
    );
  }

  /**
   * Decodes the media that the engine asked for, queues the request, and yields its replies, of which `finished` is the
   * last. Must be called once, after `prepare`. Throws the same errors as `prepare`, and those of `CallMedia.prepare`.
   * Leaving the loop early cancels the request.
   */
  async *run(): AsyncGenerator<Reply> {
    try {
      if (this.#failure) throw this.#failure;
      this.#setTimer();
      const media = this.#wanted.length > 0 ? { media: await this.#prepareMedia() } : {};
      if (this.#failure) throw this.#failure;
      const { timeoutMs } = this.#options;
      const sending = () => {
        this.#progress = 'queued';
      };
      this.#wire.sendWork({ type: 'run', timeoutMs, ...media }, sending, this.#over.signal);
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

  #prepareMedia(): Promise<PreparedMedia[]> {
    const { media } = this.#options;
    if (!media) throw engineFault('The engine asked for images or audio of a request that has none.');
    return media.prepare(this.#wanted, this.#over.signal);
  }

  /**
   * Fails the request with `internal_error`, and lets the engine free its resources. Does nothing if the call has
   * ended.
   */
  cancel(): void {
    if (!this.#ended) this.fail(new AssayError('internal_error', 'The request was cancelled.'), { cancel: true });
  }

  /** Handles a message from the engine process about this request. */
  onMessage(message: FromEngine): void {
    this.#noteRead();
    if (this.#ended) return;
    switch (message.type) {
      case 'prepared':
        this.#progress = 'checked';
        this.#wanted = message.wanted ?? [];
        this.#wire.counted(message.promptTokens);
        this.#prepared.resolve(message.promptTokens);
        return;
      case 'failed': {
        const { code, message: text, ...details } = message.error;
        this.fail(new AssayError(code, text, { ...details, cause: message.detail }), { cancel: false });
        return;
      }
      case 'queued':
      case 'reasoning':
      case 'content':
      case 'tool_call':
      case 'answers':
      case 'finished':
        if (message.type !== 'queued') this.#progress = 'answering';
        this.#replies.push(message);
        if (message.type === 'finished') this.#end(true);
        this.#wake?.();
        return;
      default:
    }
  }

  /**
   * Ends the call with an error, unless it has already ended.
   *
   * @param cancel true to send `cancel`, because the engine process has the request or will read it; false if it has
   *   ended the request itself or never got it
   */
  fail(error: AssayError, { cancel }: { cancel: boolean }): void {
    if (!cancel) this.#noteRead();
    if (this.#ended) return;
    this.#failure = error;
    if (cancel) this.#wire.sendCancel();
    this.#end(false);
    this.#prepared.reject(error);
    this.#wake?.();
  }

  get #ended(): boolean {
    return this.#state === 'abandoned' || this.#state === 'settled';
  }

  #end(answered: boolean): void {
    clearTimeout(this.#timer);
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#over.abort(this.#failure);
    if (this.#state === 'sent') this.#state = 'abandoned';
    else this.#settle(answered);
  }

  /** Records that the engine process has read the request, or that it never will. */
  #noteRead(): void {
    if (this.#state === 'sent') this.#state = 'read';
    else if (this.#state === 'abandoned') this.#settle(false);
  }

  #settle(answered: boolean): void {
    this.#state = 'settled';
    this.#wire.settled(answered);
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    const message = 'The answer was not ready in time. Try again, or send fewer tasks at once.';
    this.#timer = setTimeout(
      () => this.fail(new AssayError('timeout', message), { cancel: true }),
      this.#options.timeoutMs + GRACE_MS,
    );
  }
}

/**
 * Returns `engine_failed` for a fault of Assay itself: the engine process asks for something that does not exist.
 *
 * @param what first sentence of the message, which says what it asks for
 */
export function engineFault(what: string): AssayError {
  const next =
    'This is a fault in Assay. Try again; if it happens again, report it with the x-request-id of the answer.';
  return new AssayError('engine_failed', `${what} ${next}`);
}
