import { setImmediate } from 'node:timers/promises';
import type { Priority } from '../../lib/backend.ts';
import { FairShares } from '../../lib/limits/fair-shares.ts';

/** Milliseconds after which text work gives way, and after which it resumes even if other work still waits. */
const SLICE_MS = 5;
/**
 * Iterations of the event loop between two slices: microseconds each if nothing waits. Other work needs many (a long
 * message arrives in chunks, a run of the model ends in several callbacks); with one, it would wait for a slice each
 * time.
 */
const ITERATIONS = 64;

/**
 * Runs work on the text of requests in short slices: one at a time, of the caller first that has used least time. The
 * batch requests of a caller count as those of another caller, so they do not keep its interactive ones waiting.
 */
export class Turns {
  readonly #shares = new FairShares();
  readonly #waiting: { caller: string; begin(): void }[] = [];
  #running = false;

  /**
   * Runs the parts of a generator and returns its result. Gives way to other work, to messages and to the engine before
   * the first part, and whenever the parts since then took `SLICE_MS`. Rejects with the signal's reason if it aborts.
   *
   * @param onSlice called before and after each slice
   */
  async run<T>(
    { caller: name, priority }: { caller: string; priority?: Priority | undefined },
    parts: Generator<void, T>,
    { signal, onSlice }: { signal: AbortSignal; onSlice(event: 'begin' | 'end'): void },
  ): Promise<T> {
    const caller = priority === 'batch' ? `batch ${name}` : name;
    this.#shares.add(caller, performance.now());
    try {
      for (;;) {
        await this.#turn(caller);
        signal.throwIfAborted();
        const begin = performance.now();
        onSlice('begin');
        try {
          do {
            const part = parts.next();
            if (part.done) return part.value;
          } while (performance.now() - begin < SLICE_MS);
        } finally {
          onSlice('end');
          this.#shares.charge(caller, performance.now() - begin);
        }
      }
    } finally {
      this.#shares.remove(caller, performance.now());
    }
  }

  #turn(caller: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ caller, begin: resolve });
      void this.#serve();
    });
  }

  async #serve(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    while (this.#waiting.length > 0) {
      this.#shares.takeNext(this.#waiting)?.begin();
      // The slice runs in a microtask, and so ends before this.
      await setImmediate();
      const end = performance.now() + SLICE_MS;
      for (let i = 1; i < ITERATIONS && performance.now() < end; i++) await setImmediate();
    }
    this.#running = false;
  }
}
