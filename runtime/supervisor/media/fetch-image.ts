import dns from 'node:dns';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { at } from '../../../lib/at.ts';
import { isPublicAddress } from '../../hub/public-address.ts';

/** Names why an image was not fetched. */
export type FetchFaultKind =
  | 'address_scheme'
  | 'address_host'
  | 'address_private'
  | 'address_redirect'
  | 'address_status'
  | 'address_large'
  | 'address_slow'
  | 'address_unreachable';

/** Says that an image was not fetched. */
export class FetchFault extends Error {
  readonly kind: FetchFaultKind;

  constructor(kind: FetchFaultKind, detail: string, cause?: unknown) {
    super(detail, { cause });
    this.kind = kind;
  }
}

export interface ImageFetcher {
  /** Returns the file at an address, `maxBytes` at most. Throws `FetchFault`. */
  fetch(url: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array>;
}

export interface FetcherOptions {
  /** Hosts that may be asked: `images.example.com`, or `*.example.com` for all below it. */
  hosts: readonly string[];
  /** Milliseconds for one file. */
  timeoutMs?: number;
  /** Effects; tests pass their own. */
  lookup?: typeof dns.lookup;
  request?: typeof https.get;
  isPublic?: (address: string) => boolean;
}

const TIMEOUT_MS = 10_000;

/**
 * Creates what fetches images from a few named hosts, over https alone. Addresses that are not on the public internet
 * are refused, in whatever form they are written. It connects to the address that was checked, so a name that resolves
 * differently the second time (DNS rebinding) gains nothing; a name with a single private address is refused. Redirects
 * are not followed, and no proxy is used.
 */
export function createImageFetcher(options: FetcherOptions): ImageFetcher {
  const { hosts, timeoutMs = TIMEOUT_MS, isPublic = isPublicAddress } = options;
  const { lookup = dns.lookup, request = https.get } = options;

  const lookupPublic: LookupFunction = (hostname, given, callback) => {
    lookup(hostname, { ...given, all: true }, (error, found) => {
      if (error) return callback(error, []);
      const refused = found.length === 0 || found.some(({ address }) => !isPublic(address));
      if (refused) return callback(new FetchFault('address_private', `${hostname} has a private address`), []);
      if (given.all) return callback(null, found);
      const first = at(found, 0);
      callback(null, first.address, first.family);
    });
  };

  return {
    fetch(text, maxBytes, signal) {
      const url = check(text, hosts, isPublic);
      const timeout = AbortSignal.timeout(timeoutMs);
      const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
      const sent = request(
        url,
        {
          lookup: lookupPublic,
          agent: false,
          signal: AbortSignal.any([signal, timeout]),
          headers: { accept: 'image/*', 'accept-encoding': 'identity', 'user-agent': 'assay' },
        },
        (response) => {
          const { statusCode: status = 0 } = response;
          const chunks: Buffer[] = [];
          let bytes = 0;
          const stop = (fault: FetchFault) => {
            reject(fault);
            response.destroy();
          };
          if (status >= 300 && status < 400) return stop(new FetchFault('address_redirect', `status ${status}`));
          if (status !== 200) return stop(new FetchFault('address_status', `status ${status}`));
          response.on('data', (chunk: Buffer) => {
            bytes += chunk.length;
            if (bytes > maxBytes) stop(new FetchFault('address_large', `more than ${maxBytes} bytes`));
            else chunks.push(chunk);
          });
          response.on('end', () => resolve(Buffer.concat(chunks)));
          response.on('error', (error) => reject(faultOf(error, timeout)));
        },
      );
      sent.on('error', (error) => reject(faultOf(error, timeout)));
      return promise;
    },
  };
}

/** Returns the address if it may be asked. Throws `FetchFault`. */
function check(text: string, hosts: readonly string[], isPublic: (address: string) => boolean): URL {
  if (!URL.canParse(text)) throw new FetchFault('address_scheme', 'no address');
  const url = new URL(text);
  // The parser turns every spelling of an IP address into the usual one: `0x7f.1` into `127.0.0.1`.
  const host = url.hostname.replace(/\.$/u, '');
  if (url.protocol !== 'https:') throw new FetchFault('address_scheme', url.protocol);
  if (url.username || url.password || url.port) throw new FetchFault('address_scheme', 'credentials or a port');
  const literal = host.replace(/^\[|\]$/gu, '');
  if (/^[\d.]+$|:/u.test(literal) && !isPublic(literal)) throw new FetchFault('address_private', host);
  const allowed = hosts.some((one) => (one.startsWith('*.') ? host.endsWith(one.slice(1)) : host === one));
  if (!allowed) throw new FetchFault('address_host', host);
  return url;
}

function faultOf(error: Error, timeout: AbortSignal): FetchFault {
  if (error instanceof FetchFault) return error;
  if (timeout.aborted) return new FetchFault('address_slow', 'no answer in time', error);
  return new FetchFault('address_unreachable', error.message, error);
}
