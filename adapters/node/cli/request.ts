import { createParser } from 'eventsource-parser';
import * as v from 'valibot';
import { PRIORITY_HEADER } from '../../../handlers/call.ts';
import type { Priority } from '../../../lib/backend.ts';
import { AssayError, type ErrorCode } from '../../../lib/errors.ts';
import { ErrorBody } from '../../../lib/schema/error-body.ts';
import { chunksOf } from '../../../runtime/hub/hub-fetch.ts';
import { NoServerError } from './exit-code.ts';

export interface RequestOptions {
  /** Body of the request, which is sent as JSON. */
  body?: unknown;
  /** JSON text of the body, in the place of `body`. */
  json?: string;
  /** Priority of the request; that of the key if absent. */
  priority?: Priority;
  /** HTTP method; by default POST with a body, GET without one. */
  method?: string;
  accept?: string;
  signal?: AbortSignal;
  /** API key to send instead of the connection's own. */
  key?: string | undefined;
}

/** Represents a connection to a running server, or to the same app inside this process. */
export interface Connection {
  /** Address of the server; null for the app inside this process. */
  readonly url: string | null;
  /**
   * Sends a request and returns the response. Throws `AssayError` if its status is not a success, and `NoServerError`
   * if the connection to the server breaks. Rejects if `options.signal` aborts.
   */
  request(path: string, options?: RequestOptions): Promise<Response>;
  /** Ends the app inside this process. Does nothing for a server. */
  close(): Promise<void>;
}

/** Returns the second argument of `fetch` for a request. `connectionKey` is the API key if `options` has none;
 * undefined to send none. */
export function requestFromFlags(options: RequestOptions, connectionKey: string | undefined): RequestInit {
  const { body, method, accept, priority, signal, key = connectionKey } = options;
  const json = options.json ?? (body === undefined ? undefined : JSON.stringify(body));
  return {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: {
      accept: accept ?? 'application/json',
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(priority === undefined ? {} : { [PRIORITY_HEADER]: priority }),
    },
    ...(json === undefined ? {} : { body: json }),
    ...(signal ? { signal } : {}),
  };
}

/**
 * Returns the response if its status is a success. Otherwise throws the `AssayError` in its body, or
 * `backend_unreachable` if the body has none.
 */
export async function successOf(response: Response): Promise<Response> {
  if (response.ok) return response;
  const text = await response.text();
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  throw (
    errorOf(text, Number.isFinite(seconds) ? { retryAfterSeconds: seconds } : {}) ??
    new AssayError(
      'backend_unreachable',
      `The server answered ${response.status} without Assay's error body. Is --url the address of an Assay server?`,
    )
  );
}

/**
 * Returns the `AssayError` that the JSON text of an error body describes, with `details` in addition; null for any
 * other text.
 */
export function errorOf(text: string, details: { retryAfterSeconds?: number } = {}): AssayError | null {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), ErrorBody), text);
  if (!parsed.success) return null;
  const { code, message, param } = parsed.output.error;
  // A newer server may send a code that this version does not know. Such a code is only displayed.
  return new AssayError(code as ErrorCode, message, { ...details, ...(param === undefined ? {} : { param }) });
}

/**
 * Yields the data of each server-sent event of a response, as text.
 *
 * @throws NoServerError if the connection breaks or the request is aborted before the response ends
 */
export async function* eventsOf(response: Response): AsyncGenerator<string> {
  const ready: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => void ready.push(data) });
  const decoder = new TextDecoder();
  if (!response.body) return;
  try {
    for await (const chunk of chunksOf(response)) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* ready.splice(0);
    }
  } catch (cause) {
    throw new NoServerError(
      'The connection to the server broke before the answer was complete. Is the server still running?',
      { cause },
    );
  }
}
