/** Lets any number of callers wait for the next change of a state that another object holds. */
export class ChangeSignal {
  #next = Promise.withResolvers<void>();

  /** Promise that resolves at the next change. Each change replaces it with a new one. */
  get next(): Promise<void> {
    return this.#next.promise;
  }

  /** Reports a change to all callers that wait. */
  send(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  /**
   * Waits until `condition` returns false, calling it again at each change. Also returns after `timeoutMs` or when
   * `signal` aborts, so the caller must test the condition itself.
   *
   * @param timeoutMs milliseconds; without it, waits without a limit
   */
  async waitWhile(
    condition: () => boolean,
    { timeoutMs, signal }: { timeoutMs?: number; signal?: AbortSignal } = {},
  ): Promise<void> {
    const over = Promise.withResolvers<void>();
    let waiting = true;
    const stop = () => {
      waiting = false;
      over.resolve();
    };
    const timer = timeoutMs === undefined ? undefined : setTimeout(stop, timeoutMs);
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
    while (waiting && condition()) await Promise.race([this.next, over.promise]);
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}
