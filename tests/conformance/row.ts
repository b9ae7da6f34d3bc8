import type { ErrorType } from '../../lib/error-status.ts';
import type { ErrorCode } from '../../lib/errors.ts';
import type { Recorded, Script } from '../scripted-backend/script.ts';
import type { AppScript } from './stage.ts';

/** One line of a table: what is sent, what the backend will do, and what must come back. The same in every host. */
export interface Row {
  /** Names the line of the specification it stands for. */
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
  /** Default: POST where there is a body, else GET. */
  method?: string;
  path: string;
  /** Beside a JSON content type (where there is a body) and `Authorization: Bearer test-key`; null leaves one out. */
  headers?: Record<string, string | null>;
  /** The body as a value, */
  json?: unknown;
  /** or as it is, */
  body?: string | Uint8Array<ArrayBuffer>;
  /** or as pieces, sent without a length. */
  chunks?: readonly string[];
  /** Leave when the backend has all the calls that are expected before the abort, or after the first event of the stream. */
  leave?: 'while the backend waits' | 'after first event';
}

export interface Expectation {
  /** Default 200. Nothing is expected of the response to a caller who left. */
  status?: number;
  /** These headers; null: absent. */
  headers?: Record<string, string | RegExp | null>;
  /** The whole body (`expect.any(…)` where a value is not known). */
  json?: unknown;
  /** The whole body, letter by letter. */
  text?: string;
  /** The body has at least this. */
  like?: object;
  /** An error body with this code; its message is always checked to be there. */
  error?: ErrorCode | { code: ErrorCode; type?: ErrorType; param?: string; message?: RegExp };
  /** The data of the events of a stream, parsed; `[DONE]` stays text. */
  events?: readonly unknown[];
  /** The stream has comments between its events. */
  comments?: true;
  /** The backend was asked exactly this, in this order; details are compared as far as given. */
  calls?: readonly (Recorded['call'] | Recorded)[];
}
