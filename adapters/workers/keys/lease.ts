/** For how long an isolate may use tokens that it took ahead. */
export const LEASE_MS = 1_000;

/**
 * Tokens of one key's bucket that this isolate took ahead, so that a busy key does not ask its Durable Object at every request.
 * As many as came lately; twice that where they were used up before their time. What is left when it is over is lost.
 */
export class Lease {
  #left = 0;
  #until = Number.NEGATIVE_INFINITY;
  /** Requests since the object was last asked. */
  #came = 0;

  /** Uses one token. False where none is left: then the object is asked for `wanted`. */
  use(now: number): boolean {
    this.#came++;
    if (this.#left === 0 || now >= this.#until) return false;
    this.#left--;
    return true;
  }

  /** How many tokens to ask for, beside the one that is needed now. */
  wanted(now: number): number {
    // This request is paid for by itself, and requests that ask at the same time must not all want the same.
    const came = this.#came - 1;
    this.#came = 1;
    if (now < this.#until) return 2 * came + 1;
    return now < this.#until + LEASE_MS ? came : 0;
  }

  /** Takes over what was given to the request that asked at `askedAt`; of two that crossed, the larger lot. */
  hold(tokens: number, askedAt: number): void {
    if (tokens < this.#left && askedAt < this.#until) return;
    this.#left = tokens;
    this.#until = askedAt + LEASE_MS;
  }
}
