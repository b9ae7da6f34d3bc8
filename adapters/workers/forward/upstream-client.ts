import { AssayError } from '../../../lib/errors.ts';
import { readBytes } from '../../../lib/json/body.ts';
import { type TraceContext, traceHeaders } from '../../../lib/trace-context.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { withTimeout } from '../with-timeout.ts';
import { UpstreamFault, unreachable, upstreamError } from './upstream-fault.ts';

export interface UpstreamClientDeps {
  fetch: typeof fetch;
  /** Returns the secret of the API key that this edge sends to the upstream. */
  keyOf(upstream: Upstream): string;
}

export interface UpstreamRequest {
  method: string;
  path: string;
  body?: string;
  /**
   * Additional headers. The key and the request id are always sent, and with a body a content type, by default JSON.
   */
  headers?: Record<string, string>;
  requestId: string;
  trace?: TraceContext;
  /** Aborts the request, and the reading of the response body. */
  signal: AbortSignal;
  /** Timeout in milliseconds until the response must begin or, for `readUpstream`, until it must be complete. */
  deadlineMs: number;
}

/** Largest response in bytes that is read as a whole. It exceeds by far what 4,096 tokens and their metadata take. */
const MOST_BYTES = 32 * 1024 * 1024;

/**
 * Sends a request and returns the upstream's response as soon as it begins, whatever its status. Throws `UpstreamFault`
 * if the upstream cannot be reached, `timeout` if it does not answer within the deadline, and the reason of
 * `request.signal` if that aborts.
 */
export async function fetchUpstream(
  upstream: Upstream,
  request: UpstreamRequest,
  deps: UpstreamClientDeps,
): Promise<Response> {
  const { signal, deadlineMs } = request;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), deadlineMs);
  try {
    return await send(upstream, request, AbortSignal.any([signal, late.signal]), deps);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw late.signal.aborted ? timedOut(deadlineMs) : unreachable(error);
  } finally {
    clearTimeout(timer);
  }
}

function send(
  upstream: Upstream,
  { method, path, body, headers, requestId, trace }: UpstreamRequest,
  signal: AbortSignal,
  deps: UpstreamClientDeps,
): Promise<Response> {
  return deps.fetch(`${upstream.url}${path}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
      authorization: `Bearer ${deps.keyOf(upstream)}`,
      'x-request-id': requestId,
      ...(trace ? traceHeaders(trace) : {}),
    },
    ...(body === undefined ? {} : { body }),
    signal,
    // A redirect is never followed, because the key must not reach another server.
    redirect: 'manual',
  });
}

/**
 * Returns the upstream's response as soon as it begins, if its status is a success. For an error response, throws
 * `UpstreamFault` if another upstream may succeed, otherwise the upstream's error (`upstreamError`). Throws
 * `UpstreamFault` also if the upstream cannot be reached, `timeout` if it misses the deadline, and the reason of
 * `request.signal` if that aborts.
 */
export async function askUpstream(
  upstream: Upstream,
  request: UpstreamRequest,
  deps: UpstreamClientDeps,
): Promise<Response> {
  const response = await fetchUpstream(upstream, request, deps);
  if (response.ok) return response;
  throw upstreamError(
    response.status,
    await readText(response, request.deadlineMs),
    response.headers.get('retry-after'),
  );
}

/**
 * Returns the body's text and the headers of a successful response, which must be complete within the deadline. Throws
 * the same errors as `askUpstream`. Uses one timer for sending and reading, because timers are expensive in a Worker.
 */
export async function readUpstream(
  upstream: Upstream,
  request: UpstreamRequest,
  deps: UpstreamClientDeps,
): Promise<{ text: string; headers: Headers }> {
  const { signal, deadlineMs } = request;
  const over = new AbortController();
  const exchange = async () => {
    const response = await send(upstream, request, AbortSignal.any([signal, over.signal]), deps);
    return { response, text: await wholeText(response) };
  };
  try {
    const { response, text } = await withTimeout(exchange(), deadlineMs, () => timedOut(deadlineMs));
    if (response.ok) return { text, headers: response.headers };
    throw upstreamError(response.status, text, response.headers.get('retry-after'));
  } catch (error) {
    // Ends a response that hangs, and the upstream's work on it.
    over.abort();
    if (signal.aborted) throw signal.reason;
    throw error instanceof AssayError || error instanceof UpstreamFault ? error : unreachable(error);
  }
}

/**
 * Returns the whole body of a response as text. Throws `UpstreamFault` if the response breaks off or has more than 32
 * MiB, and `timeout` if it is not complete within `deadlineMs` milliseconds.
 */
export function readText(response: Response, deadlineMs: number): Promise<string> {
  return withTimeout(wholeText(response), deadlineMs, () => timedOut(deadlineMs));
}

async function wholeText(response: Response): Promise<string> {
  // HTTP guarantees that a body is not longer than its Content-Length, so `text` cannot read too much. That header of a
  // compressed body counts the bytes before `fetch` decompresses them.
  const compressed = response.headers.has('content-encoding');
  const length = Number((compressed ? null : response.headers.get('content-length')) ?? Number.NaN);
  try {
    if (length <= MOST_BYTES) return await response.text();
    return new TextDecoder().decode(await readBytes(response.body, MOST_BYTES));
  } catch (cause) {
    // `readBytes` reports a broken or long body as an error of the request that it belongs to.
    throw unreachable(cause);
  }
}

/** Returns the error for an upstream that did not answer within `ms` milliseconds. */
export function timedOut(ms: number): AssayError {
  return new AssayError(
    'timeout',
    `The box did not answer within ${ms / 1000} seconds. Send fewer tasks or a shorter text in one request.`,
  );
}
