/** Lets at most `count` calls run at once; the others wait in order. */
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
 * Runs all calls. When one fails, aborts the others, waits for their end, and throws the first error, so that no call
 * still writes afterwards.
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
  // TypeScript does not see the assignment in the callback.
  if (failure) throw (failure as { error: unknown }).error;
}
