import { AssayError } from '../errors.ts';

/**
 * Bytes of each body that are not charged to the budget, so that small requests are accepted however many large ones
 * are running.
 */
const FREE_BYTES = 64 * 1024;

/** Reserves the bytes of one request's body in the budget. */
export interface BodyShare {
  /**
   * Reserves bytes for the body, before they are stored.
   *
   * @throws AssayError `overloaded` if the bodies of other requests leave too few
   */
  take(bytes: number): void;
  /** Returns all reserved bytes to the budget. */
  release(): void;
}

/**
 * Bounds the memory that the bodies of all running requests take together: each may have 20 MiB, and there may be many
 * connections.
 */
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
