/** Declares the calls that gateway isolates make to the Durable Object of a key. */
export interface QuotaCalls {
  /** Takes one request from the key's bucket. Returns the seconds to wait if there is none left, else null. */
  take(requestsPerMinute: number): Promise<number | null>;
}
