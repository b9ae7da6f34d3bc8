/** Retries that each request adds to the budget: in the long run one of five requests may be retried. */
const RETRIES_PER_REQUEST = 0.2;
/** Maximum number of retries that the budget holds. It begins full, so a fault in a quiet fleet is retried. */
const MOST_RETRIES = 10;

/**
 * Bounds how many requests are tried again after an upstream failed. Without a bound, retries multiply the load just
 * when upstreams fail because of it (Envoy and Finagle bound them the same way).
 */
export class RetryBudget {
  #left = MOST_RETRIES;

  /** Records a new request. */
  add(): void {
    this.#left = Math.min(MOST_RETRIES, this.#left + RETRIES_PER_REQUEST);
  }

  /** Takes one retry. Returns false if none is left. */
  take(): boolean {
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
