import { AssayError } from '../../../lib/errors.ts';
import { readBytes } from '../../../lib/json/body.ts';
import { type TraceContext, traceHeaders } from '../../../lib/trace-context.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { withTimeout } from '../with-timeout.ts';
import { UpstreamFault, unreachable, upstreamError } from './upstream-fault.ts';

export interface UpstreamClientDeps {
  fetch: typeof fetch;
  /** Returns the API key of this gateway for the upstream. */
  keyOf(upstream: Upstream): string;
}

export interface UpstreamRequest {
  method: string;
  path: string;
  body?: string;
  /** Additional headers. The key, the request id and, with a body, the JSON content type are always sent. */
  headers?: Record<string, string>;
  requestId: string;
  trace?: TraceContext;
  /** Aborts the whole exchange, reading the answer's body included. */
  signal: AbortSignal;
  /** Timeout in milliseconds until the answer must begin; for `readUpstream`, until it must be complete. */
  deadlineMs: number;
}

/** Most bytes of an answer that is read as a whole: far more than 4096 tokens and their copy as text take. */
const MOST_BYTES = 32 * 1024 * 1024;

/**
 * Returns the upstream's response as soon as it begins, whatever its status. Throws an `UpstreamFault` if the upstream
 * cannot be reached, and `timeout` if it does not answer within the deadline.
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
    // Redirects are never followed, because the key is for this upstream only.
    redirect: 'manual',
  });
}

/**
 * Returns the upstream's response as soon as it begins, if it is successful. Throws as `fetchUpstream` and, for an
 * error response, an `UpstreamFault` if another upstream may succeed, else the request's own error.
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
 * Returns text and headers of a successful response that is complete within the deadline. Throws as `askUpstream`. Uses
 * only one timer, because timers are expensive in a Worker.
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
    // Aborts a response that hangs half way, and with it the upstream's work.
    over.abort();
    if (signal.aborted) throw signal.reason;
    throw error instanceof AssayError || error instanceof UpstreamFault ? error : unreachable(error);
  }
}

/**
 * Reads the whole text of a response. Throws an `UpstreamFault` if the response breaks off, and `timeout` if it exceeds
 * the deadline.
 */
export async function readText(response: Response, deadlineMs: number): Promise<string> {
  try {
    return await withTimeout(wholeText(response), deadlineMs, () => timedOut(deadlineMs));
  } catch (error) {
    throw error instanceof AssayError && error.code === 'timeout' ? error : unreachable(error);
  }
}

async function wholeText(response: Response): Promise<string> {
  // HTTP itself ensures that a body is no longer than its Content-Length.
  const length = Number(response.headers.get('content-length') ?? Number.NaN);
  if (length <= MOST_BYTES) return response.text();
  return new TextDecoder().decode(await readBytes(response.body, MOST_BYTES));
}

/** Returns the error of an upstream that exceeded the deadline. */
export function timedOut(ms: number): AssayError {
  return new AssayError(
    'timeout',
    `The box did not answer within ${ms / 1000} seconds. Send fewer tasks or a shorter text in one request.`,
  );
}
