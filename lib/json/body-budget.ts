import { AssayError } from '../errors.ts';

/** The bytes of each body that need no budget: small requests are accepted, however many large ones are running. */
const FREE_BYTES = 64 * 1024;

/** Manages one request's share of the budget. */
export interface BodyShare {
  /**
   * Reserves bytes for the body, before they are kept.
   *
   * @throws AssayError `overloaded` if the running bodies leave too few
   */
  take(bytes: number): void;
  /** Returns all reserved bytes to the budget. */
  release(): void;
}

/** Bounds the bodies of all requests together: each may have 20 MiB, and there may be many connections. */
export class BodyBudget {
  readonly #bytes: number;
  #left: number;

  constructor(bytes: number) {
    this.#bytes = bytes;
    this.#left = bytes;
  }

  /** Bytes reserved by running requests. */
  get used(): number {
    return this.#bytes - this.#left;
  }

  share(): BodyShare {
    let free = FREE_BYTES;
    let taken = 0;
    return {
      take: (bytes) => {
        const needed = Math.max(0, bytes - free);
        if (needed > this.#left) {
          throw new AssayError('overloaded', 'Too many large bodies are being read. Send this one again later.', {
            retryAfterSeconds: 1,
          });
        }
        free = Math.max(0, free - bytes);
        taken += needed;
        this.#left -= needed;
      },
      release: () => {
        this.#left += taken;
        taken = 0;
      },
    };
  }
}
