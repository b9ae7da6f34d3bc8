import type { ErrorType } from '../../lib/error-status.ts';
import type { ErrorCode } from '../../lib/errors.ts';
import type { Recorded, Script } from '../scripted-backend/script.ts';
import type { AppScript } from './stage.ts';

/** One row of a table: the request, the backend's script, and the expected response. The same in every host. */
export interface Row {
  /** Names the rule that it tests. */
  name: string;
  app?: AppScript;
  script?: Script;
  request: RowRequest;
  expect: Expectation;
  /** Sent after the first one, to the same app. */
  next?: readonly { request: RowRequest; expect: Expectation }[];
  /** Hosts that cannot send such a request, with the reason. */
  skip?: { hosts: readonly HostName[]; because: string };
}

export type HostName = 'fetch' | 'socket' | 'workerd' | 'edge';

export interface RowRequest {
  /** Default: POST with a body, else GET. */
  method?: string;
  path: string;
  /** Added to a JSON content type (with a body) and `Authorization: Bearer test-key`; null removes one. */
  headers?: Record<string, string | null>;
  /** The body as a value. */
  json?: unknown;
  /** The body as text or bytes. */
  body?: string | Uint8Array<ArrayBuffer>;
  /** The body as chunks, sent without a length. */
  chunks?: readonly string[];
  /**
   * Leaves when the backend has received all calls that are expected before the abort, or after the first event of the
   * stream.
   */
  leave?: 'while the backend waits' | 'after first event';
}

export interface Expectation {
  /** Default 200. No response is expected by a caller who left. */
  status?: number;
  /** Expected headers; null: absent. */
  headers?: Record<string, string | RegExp | null>;
  /** The whole body (`expect.any(…)` for an unknown value). */
  json?: unknown;
  /** The whole body, character by character. */
  text?: string;
  /** Members that the body has at least. */
  like?: object;
  /** The code of the error body; its message must be present. */
  error?: ErrorCode | { code: ErrorCode; type?: ErrorType; param?: string; message?: RegExp };
  /** The data of the stream's events, parsed; `[DONE]` stays text. */
  events?: readonly unknown[];
  /** The stream has comments between its events. */
  comments?: true;
  /** The exact calls to the backend, in this order; details are compared as far as given. */
  calls?: readonly (Recorded['call'] | Recorded)[];
}
