import { AssayError } from '../errors.ts';

/** Bytes of every body that need no room: small requests pass, whatever large ones are under way. */
const FREE_BYTES = 64 * 1024;

/** One request's part of the room. */
export interface BodyShare {
  /**
   * Takes room for so many more bytes of the body, before they are kept.
   *
   * @throws AssayError `overloaded` where the bodies under way leave none
   */
  take(bytes: number): void;
  /** Gives back all that was taken. */
  release(): void;
}

/** The bound on the bodies of all requests together: each may have 20 MiB, and connections may be many. */
export class BodyBudget {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
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
