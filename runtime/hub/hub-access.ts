import type { Clock } from '../../lib/clock.ts';

/** Holds the effects and settings that requests to a hub need. */
export interface HubAccess {
  fetch: typeof fetch;
  /** `fetch` that connects to public addresses only (`fetchPublic`), for redirects that leave the hub. */
  fetchPublic: typeof fetch;
  /** Resolves the IP addresses of a host; they tell whether the hub itself is on a private network. */
  addressesOf(hostname: string): Promise<string[]>;
  clock: Clock;
  /** Returns a number from 0 to 1, for the jitter of waiting times. */
  random(): number;
  /** Base address, without a slash at the end. */
  endpoint: string;
  token: string | null;
  offline: boolean;
}
