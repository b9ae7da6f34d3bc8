import dns from 'node:dns';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { at } from '../../../lib/at.ts';
import { isPublicAddress } from '../../hub/public-address.ts';

/** Reasons why an image was not fetched: values of the label `reason` of the metric `assay_images_refused_total`. */
export type FetchFaultKind =
  | 'address_scheme'
  | 'address_host'
  | 'address_private'
  | 'address_redirect'
  | 'address_status'
  | 'address_large'
  | 'address_slow'
  | 'address_unreachable';

/** Reports that an image was not fetched. `kind` says why; the message is for the log. */
export class FetchFault extends Error {
  readonly kind: FetchFaultKind;

  constructor(kind: FetchFaultKind, detail: string, cause?: unknown) {
    super(detail, { cause });
    this.kind = kind;
  }
}

/** Holds the number of bytes that one request may still fetch, also by several fetches at the same time. */
export interface FetchBudget {
  bytes: number;
}

export interface ImageFetcher {
  /**
   * Returns the content of the file at a URL, and subtracts its length from `budget.bytes`. Throws `FetchFault` if the
   * URL is refused, the budget is exceeded, or the request fails, times out or is aborted.
   */
  fetch(url: string, budget: FetchBudget, signal: AbortSignal): Promise<Uint8Array>;
}

export interface FetcherOptions {
  /** Hosts that images may be fetched from: `images.example.com`, or `*.example.com` for all of its subdomains. */
  hosts: readonly string[];
  /** Timeout of one file in milliseconds. Default: 10,000. */
  timeoutMs?: number;
  // Tests replace the name lookup, the HTTPS request and the check of addresses.
  lookup?: typeof dns.lookup;
  request?: typeof https.get;
  isPublic?: (address: string) => boolean;
}

const TIMEOUT_MS = 10_000;

/**
 * Creates a fetcher for images from the given hosts, over https only. Refuses addresses that are not on the public
 * internet, however they are written, and names with any such address. Connects to the address that was checked, so a
 * name that resolves differently the second time (DNS rebinding) gains nothing. Follows no redirects and uses no proxy.
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
    async fetch(text, budget, signal) {
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
          const stop = (fault: FetchFault) => {
            reject(fault);
            response.destroy();
          };
          if (status >= 300 && status < 400) return stop(new FetchFault('address_redirect', `status ${status}`));
          if (status !== 200) return stop(new FetchFault('address_status', `status ${status}`));
          response.on('data', (chunk: Buffer) => {
            budget.bytes -= chunk.length;
            if (budget.bytes < 0) stop(new FetchFault('address_large', 'its request may fetch no more bytes'));
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

/** Returns the parsed URL if images may be fetched from it. Throws `FetchFault` otherwise. */
function check(text: string, hosts: readonly string[], isPublic: (address: string) => boolean): URL {
  if (!URL.canParse(text)) throw new FetchFault('address_scheme', 'not a URL');
  const url = new URL(text);
  // The URL parser normalizes every spelling of an IP address: `0x7f.1` becomes `127.0.0.1`.
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
