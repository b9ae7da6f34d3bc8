const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Decides how long to wait before each restart of the engine process. The first restart is immediate. Later ones wait
 * 250 ms, then twice as long each time, up to 30 seconds.
 */
export class RestartBackoff {
  /** Number of restarts since the last call of `reset`. */
  #restarts = 0;

  /** Returns the milliseconds to wait before the next restart, and counts it. */
  next(): number {
    const pause = this.#restarts === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (this.#restarts - 1), LONGEST_PAUSE_MS);
    this.#restarts++;
    return pause;
  }

  /** Makes the next restart immediate, because the process has answered a request or a new model is loaded. */
  reset(): void {
    this.#restarts = 0;
  }
}
