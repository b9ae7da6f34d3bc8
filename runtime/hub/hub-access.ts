import type { Clock } from '../../lib/clock.ts';

/** The outside world that requests to a hub need, and the hub's settings. */
export interface HubAccess {
  fetch: typeof fetch;
  /** `fetch` that connects to public addresses only (`fetchPublic`), for redirects that leave the hub. */
  fetchPublic: typeof fetch;
  /** The IP addresses of a host; says whether the hub itself is on a private network. */
  addressesOf(hostname: string): Promise<string[]>;
  clock: Clock;
  /** 0 to 1, for the spread of waiting times. */
  random(): number;
  /** Base address, without a slash at the end. */
  endpoint: string;
  token: string | null;
  offline: boolean;
}
