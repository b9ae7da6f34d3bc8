/** Declares the calls that edge isolates make to the Durable Object of a key. */
export interface QuotaCalls {
  /** Takes one request from the key's token bucket. Returns null, or the seconds to wait if the bucket is empty. */
  take(requestsPerMinute: number): Promise<number | null>;
}
