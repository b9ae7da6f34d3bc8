/** For how long an isolate may use tokens that it took ahead. */
export const LEASE_MS = 1_000;

/**
 * Tokens of one key's bucket that this isolate took ahead, so that a busy key does not ask its Durable Object at every request.
 * As many as came lately; twice that where they were used up before their time. What is left when it is over is lost.
 */
export class Lease {
  #left = 0;
  #until = Number.NEGATIVE_INFINITY;
  /** Tokens were asked for and have not come. */
  #waits = false;
  /** Requests since tokens were last asked for. */
  #came = 0;

  /** Uses one token. False where none is left: then the object is asked for the request itself, and for those of `ask` ahead. */
  use(now: number): boolean {
    this.#came++;
    if (this.#left === 0 || now >= this.#until) return false;
    this.#left--;
    return true;
  }

  /**
   * How many tokens to ask for, beside the one that is needed now. None while others are awaited: of two lots at once the
   * second would be too much, and lost. They are awaited no longer than a lease lasts: where its caller leaves, no answer comes.
   */
  ask(now: number): number {
    if (this.#waits && now < this.#until) return 0;
    // This request is paid for by itself.
    const came = this.#came - 1;
    const wanted = now < this.#until ? 2 * came + 1 : now < this.#until + LEASE_MS ? came : 0;
    this.#left = 0;
    this.#until = now + LEASE_MS;
    this.#waits = wanted > 0;
    this.#came = 1;
    return wanted;
  }

  /** Takes over what was given for the tokens that were wanted at `askedAt`. */
  hold(tokens: number, askedAt: number): void {
    if (!this.#waits || askedAt + LEASE_MS !== this.#until) return;
    this.#left = tokens;
    this.#waits = false;
  }
}
