/** Runs at most `count` calls at the same time. Further calls wait in order. */
export class Limiter {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await call();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

/**
 * Runs all calls at the same time. If one fails, aborts the others, waits until they have ended, because they may still
 * be writing, and throws the first error.
 */
export async function allOrAbort(
  calls: readonly ((signal: AbortSignal) => Promise<void>)[],
  signal: AbortSignal,
): Promise<void> {
  const controller = new AbortController();
  const both = AbortSignal.any([signal, controller.signal]);
  let failure: { error: unknown } | null = null;
  await Promise.all(
    calls.map(async (call) => {
      try {
        both.throwIfAborted();
        await call(both);
      } catch (error) {
        failure ??= { error };
        controller.abort();
      }
    }),
  );
  // A cast: TypeScript does not see the assignment inside the callback.
  if (failure) throw (failure as { error: unknown }).error;
}
