/** Declares the calls that edge isolates make to the Durable Object of a key. */
export interface QuotaCalls {
  /**
   * Takes one token from the key's bucket. Returns null, or the seconds until the next token if the bucket is empty.
   */
  take(requestsPerMinute: number): Promise<number | null>;
}
