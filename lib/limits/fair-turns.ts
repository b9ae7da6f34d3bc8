import type { Priority } from '../backend.ts';
import { FairShares } from './fair-shares.ts';

/**
 * Returns the name under which a request has turns. The batch requests of a caller count as those of another caller, so
 * they do not keep its interactive ones waiting.
 */
export function nameOf({ caller = '', priority }: { caller?: string | undefined; priority?: Priority | undefined }) {
  return priority === 'batch' ? `batch ${caller}` : caller;
}

/** Begins the work, and resolves once it has ended to a function that tells its caller how. */
type Begin = () => Promise<() => void>;

/** Runs the work of callers one after another: of the caller first that has used least time. */
export class FairTurns {
  readonly #shares = new FairShares();
  readonly #waiting: { caller: string; begin: Begin }[] = [];
  readonly #rest: (ms: number) => Promise<void> | undefined;
  #serving = false;

  /** @param rest called after each work with the milliseconds that it took; the next one begins when it resolves */
  constructor(rest: (ms: number) => Promise<void> | undefined = () => undefined) {
    this.#rest = rest;
  }

  /** Returns how many works wait for their turn, of one caller or of all. */
  waiting(caller?: string): number {
    return caller === undefined ? this.#waiting.length : this.#waiting.filter((turn) => turn.caller === caller).length;
  }

  /**
   * Runs work when it is its turn, and returns its result. Rejects with the signal's reason as soon as that aborts:
   * work that waits is then dropped, and work that has begun keeps its turn to its end.
   */
  async run<T>(caller: string, work: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const begin: Begin = async () => {
      try {
        const result = await work();
        return () => resolve(result);
      } catch (error) {
        return () => reject(error);
      }
    };
    const turn = { caller, begin };
    const leave = () => {
      const place = this.#waiting.indexOf(turn);
      if (place >= 0) this.#waiting.splice(place, 1);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', leave);
    this.#shares.add(caller, performance.now());
    this.#waiting.push(turn);
    void this.#serve();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', leave);
      this.#shares.remove(caller, performance.now());
    }
  }

  async #serve(): Promise<void> {
    if (this.#serving) return;
    this.#serving = true;
    for (;;) {
      const next = this.#shares.takeNext(this.#waiting);
      if (!next) break;
      const began = performance.now();
      const settle = await next.begin();
      const ms = performance.now() - began;
      this.#shares.charge(next.caller, ms);
      settle();
      await this.#rest(ms);
    }
    this.#serving = false;
  }
}
