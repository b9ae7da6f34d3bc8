import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { at } from '../../lib/at.ts';
import { AssayError } from '../../lib/errors.ts';

/**
 * Tells whether an IP address is on the public internet, and not loopback, link-local (a cloud's metadata service),
 * private or otherwise special (the IANA special-purpose registries, as in `ipaddr.js`). Returns false for a text that
 * is not an IP address.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  // An IPv4 address written as IPv6 (`::ffff:127.0.0.1`) reaches the same machine, so it is converted first.
  return ipaddr.process(address).range() === 'unicast';
}

/**
 * Resolves a host name to its IP addresses. Returns a literal address as it is, without the brackets of `[::1]`.
 * Rejects if the name is unknown.
 */
export async function addressesOf(hostname: string): Promise<string[]> {
  const literal = hostname.replace(/^\[|\]$/g, '');
  if (ipaddr.isValid(literal)) return [literal];
  return (await dns.promises.lookup(hostname, { all: true })).map(({ address }) => address);
}

/**
 * A `fetch` that connects to public addresses only. It connects to the address that it has checked, so a name that
 * resolves differently the second time (DNS rebinding) gains nothing. With a proxy (`NODE_USE_ENV_PROXY`), the proxy
 * resolves names instead.
 */
export const fetchPublic: typeof fetch = async (input, init) => {
  if (process.env.NODE_USE_ENV_PROXY === '1') return fetch(input, init);
  agent ??= import('undici').then(({ Agent, fetch: undiciFetch }) => {
    const dispatcher = new Agent({ connect: { lookup: lookupPublic } });
    return ((url, options) =>
      // Casts, because undici has its own types for the same values.
      undiciFetch(url as string, {
        ...(options as object),
        dispatcher,
      }) as unknown as Promise<Response>) as typeof fetch;
  });
  return (await agent)(input, init);
};

/** The `fetch` of undici, loaded for the first redirect that leaves a hub. */
let agent: Promise<typeof fetch> | undefined;

const lookupPublic: LookupFunction = (hostname, options, callback) => {
  dns.lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error) return callback(error, []);
    const open = found.filter(({ address }) => isPublicAddress(address));
    if (open.length === 0) return callback(privateAddress(hostname), []);
    if (options.all) return callback(null, open);
    callback(null, at(open, 0).address, at(open, 0).family);
  });
};

/** Returns `hub_unreachable` for a redirect of a public hub to a host with a private address. */
export function privateAddress(hostname: string): AssayError {
  return new AssayError(
    'hub_unreachable',
    `The hub redirects to ${hostname}, which is a private address, but the hub is public. Check HF_ENDPOINT.`,
  );
}
