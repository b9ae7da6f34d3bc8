import type { Clock } from '../../lib/clock.ts';

/** Provides what requests to a hub depend on: network, clock, random numbers and settings. */
export interface HubAccess {
  fetch: typeof fetch;
  /** A `fetch` that connects to public addresses only (`fetchPublic`), for redirects that leave the hub. */
  fetchPublic: typeof fetch;
  /** Resolves the IP addresses of a host, to tell whether the hub itself is on a private network. */
  addressesOf(hostname: string): Promise<string[]>;
  clock: Clock;
  /** Returns a random number from 0 up to 1, for the jitter of waiting times. */
  random(): number;
  /** Base URL of the hub, without a trailing slash. */
  endpoint: string;
  token: string | null;
  offline: boolean;
}
