import { AssayError } from '../../lib/errors.ts';
import { isPublicAddress, privateAddress } from './public-address.ts';
import type { HubAccess } from './pull-context.ts';

/** Maximum number of redirects to follow. Hugging Face needs one or two for a file. */
const MAX_REDIRECTS = 5;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/**
 * Sends a request to a hub and follows its redirects. The token is sent only to the hub's own origin, and not after a
 * redirect has left it. Redirects to private addresses are refused unless the hub has one itself, because a public hub
 * must not reach machines that only this machine can reach.
 *
 * @throws AssayError `hub_unreachable` for a redirect that is refused, or more than `MAX_REDIRECTS`; otherwise the
 *   error of `fetch`, which is the abort's reason if `init.signal` aborts
 */
export async function hubFetch(hub: HubAccess, url: string | URL, init: RequestInit): Promise<Response> {
  const home = new URL(hub.endpoint);
  let target = new URL(url);
  let atHome = true;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    atHome &&= target.origin === home.origin;
    const headers = new Headers(init.headers);
    headers.delete('authorization');
    if (atHome && hub.token) headers.set('authorization', `Bearer ${hub.token}`);
    const send = await senderFor(hub, home, target);
    const response = await send(target.href, { ...init, headers, redirect: 'manual' }).catch(refusalInside);
    const location = REDIRECTS.includes(response.status) ? response.headers.get('location') : null;
    if (location === null) return response;
    await response.body?.cancel();
    target = redirectTarget(location, target);
  }
  throw new AssayError('hub_unreachable', `${home.host} redirects too often. Check HF_ENDPOINT.`);
}

async function senderFor(hub: HubAccess, home: URL, target: URL): Promise<typeof fetch> {
  if (target.origin === home.origin || (await isPrivate(hub, home))) return hub.fetch;
  const literal = /^[\d.]+$|^\[/.test(target.hostname);
  // `fetchPublic` checks addresses when it resolves a name; a literal address is never resolved.
  if (literal && !isPublicAddress(target.hostname.replace(/^\[|\]$/g, ''))) throw privateAddress(target.hostname);
  return hub.fetchPublic;
}

/**
 * Tells whether the hub is on a private network. A hub whose name cannot be resolved must be reached through a proxy,
 * and counts as public.
 */
async function isPrivate(hub: HubAccess, home: URL): Promise<boolean> {
  const addresses = await hub.addressesOf(home.hostname).catch(() => []);
  return addresses.some((address) => !isPublicAddress(address));
}

function redirectTarget(location: string, from: URL): URL {
  const target = URL.canParse(location, from) ? new URL(location, from) : null;
  if (target && /^https?:$/.test(target.protocol)) return target;
  const where = target ? target.protocol : 'no address';
  throw new AssayError(
    'hub_unreachable',
    `${from.host} redirects to ${where}, not to http or https. Check HF_ENDPOINT.`,
  );
}

/**
 * Rethrows an error of `fetch`, or the `AssayError` that is its cause: `fetch` wraps the error that a name lookup
 * throws.
 */
function refusalInside(error: unknown): never {
  // A cast: `fetch` rejects with errors only.
  const { cause } = error as Error;
  throw cause instanceof AssayError ? cause : error;
}

/** Yields the body of a response in chunks as they arrive. Leaving the loop closes the connection. */
export async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void> {
  // A cast: Node's response streams are iterable, but the types of `fetch` do not say so.
  if (body) yield* body as unknown as AsyncIterable<Uint8Array>;
}
