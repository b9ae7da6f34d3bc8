import { setImmediate } from 'node:timers/promises';
import { FairTurns } from '../../lib/limits/fair-turns.ts';

/** Milliseconds after which text work gives way, and after which it resumes even if other work still waits. */
const SLICE_MS = 5;
/**
 * Iterations of the event loop between two slices: microseconds each if nothing waits. Other work needs many (a long
 * message arrives in chunks, a run of the model ends in several callbacks); with one, it would wait for a slice each
 * time.
 */
const ITERATIONS = 64;

/** Runs work on the text of requests in short slices: one at a time, of the caller first that has used least time. */
export class TextTurns {
  readonly #turns = new FairTurns(giveWay);

  /**
   * Runs the parts of a generator and returns its result. Gives way to other work, to messages and to the engine
   * whenever the parts took `SLICE_MS`. Rejects with the signal's reason if it aborts.
   *
   * @param name that of `nameOf`
   * @param onSlice called before and after each slice
   */
  async run<T>(
    name: string,
    parts: Generator<void, T>,
    { signal, onSlice }: { signal: AbortSignal; onSlice(event: 'begin' | 'end'): void },
  ): Promise<T> {
    const slice = () => {
      const end = performance.now() + SLICE_MS;
      onSlice('begin');
      try {
        for (;;) {
          const part = parts.next();
          if (part.done || performance.now() >= end) return part;
        }
      } finally {
        onSlice('end');
      }
    };
    for (;;) {
      const part = await this.#turns.run(name, slice, signal);
      if (part.done) return part.value;
    }
  }
}

async function giveWay(): Promise<void> {
  const end = performance.now() + SLICE_MS;
  for (let i = 0; i < ITERATIONS && (i === 0 || performance.now() < end); i++) await setImmediate();
}
