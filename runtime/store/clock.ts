import { setTimeout as sleep } from 'node:timers/promises';

/** Time, passed in so that tests decide how it runs. */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number;
  /** Resolves after so many milliseconds; rejects with the signal's reason when it aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  sleep: async (milliseconds, signal) => {
    await sleep(milliseconds, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted());
  },
};
