import { AssayError } from '../errors.ts';

/**
 * Bytes of each body that are not counted against the budget. Small requests are therefore accepted however many large
 * ones are running.
 */
const FREE_BYTES = 64 * 1024;

/** Holds the bytes of the budget that one request's body has reserved. */
export interface BodyShare {
  /**
   * Reserves bytes for the body; the first 64 KiB of a body are free. Must be called before the bytes are stored.
   *
   * @throws AssayError `overloaded` if the bodies of other requests leave too few bytes
   */
  take(bytes: number): void;
  /** Gives all reserved bytes back to the budget; further calls do nothing. */
  release(): void;
}

/**
 * Bounds the memory that the bodies of all running requests take together. One body may have 20 MiB, and there may be
 * many connections.
 */
export class BodyBudget {
  readonly #bytes: number;
  #left: number;

  /** @param bytes size of the budget */
  constructor(bytes: number) {
    this.#bytes = bytes;
    this.#left = bytes;
  }

  /** Number of bytes that running requests have reserved. */
  get used(): number {
    return this.#bytes - this.#left;
  }

  /** Returns a share of the budget for a new request. It has no reserved bytes yet. */
  share(): BodyShare {
    let free = FREE_BYTES;
    let taken = 0;
    return {
      take: (bytes) => {
        const needed = Math.max(0, bytes - free);
        if (needed > this.#left) {
          throw new AssayError(
            'overloaded',
            'The server is busy with other large requests. Send this one again later.',
            {
              retryAfterSeconds: 1,
            },
          );
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
