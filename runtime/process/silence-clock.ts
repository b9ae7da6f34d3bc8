/**
 * Factor on `limitMs` of `exceeds`, in wall time, for a process that runs but gets little processor time, as on a
 * machine with more work than processors.
 */
const STARVED = 10;
/** Factor on `limitMs` of `exceeds`, in wall time, where the system does not report processor times. */
const UNKNOWN = 3;

/**
 * Measures how long a process has been silent, in wall time and in its own processor time. A process that waits for a
 * processor is slow but not hung, so its silence counts only as far as it ran. All times are in milliseconds.
 */
export class SilenceClock {
  #messageAt: number;
  /** Time of the last reading in which the processor time had grown. */
  #ranAt: number;
  #readAt: number;
  #processorMs: number | null = 0;
  /** Time since the last message in which the process ran: its processor time, but at most the wall time. */
  #ranMs = 0;

  /** @param now the present time, of the same clock as for all other methods */
  constructor(now: number) {
    this.#messageAt = now;
    this.#ranAt = now;
    this.#readAt = now;
  }

  /** Records a sign of progress, such as a message: the process is no longer silent. */
  heard(now: number): void {
    this.#messageAt = now;
    this.#ranMs = 0;
  }

  /** Records the processor time that the process has used since its start; null if it is not known. */
  read(now: number, processorMs: number | null): void {
    const used = (processorMs ?? 0) - (this.#processorMs ?? processorMs ?? 0);
    if (used > 0) {
      this.#ranAt = now;
      // Threads that run side by side use more than the wall time.
      this.#ranMs += Math.min(used, now - Math.max(this.#readAt, this.#messageAt));
    }
    this.#readAt = now;
    this.#processorMs = processorMs;
  }

  /** Returns the wall time since the last message. */
  silentMs(now: number): number {
    return now - this.#messageAt;
  }

  /**
   * Returns true if the process counts as hung: since its last message, it ran for longer than `limitMs`, or it did
   * nothing for that time, or ten times that time has passed. Where the processor time is not known, three times
   * `limitMs` may pass.
   */
  exceeds(limitMs: number, now: number): boolean {
    const silent = this.silentMs(now);
    if (this.#processorMs === null) return silent > UNKNOWN * limitMs;
    const idle = now - Math.max(this.#ranAt, this.#messageAt);
    return this.#ranMs > limitMs || idle > limitMs || silent > STARVED * limitMs;
  }
}
