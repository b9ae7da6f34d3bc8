import type * as v from 'valibot';
import type { ErrorFormat } from '../error-status.ts';

export type Method = 'GET' | 'POST' | 'DELETE';

/** Describes one operation of the contract: a method of a path. */
export interface Operation {
  /** Format of the operation's errors. */
  api: ErrorFormat;
  method: Method;
  /** The path, with parameters as `{model_id}`. */
  path: string;
  /** The OpenAPI `operationId`, after which generated clients name a function. */
  id: string;
  summary: string;
  description?: string;
  /** Schema of the body. Every schema of an operation has a name in `COMPONENTS`. */
  request?: v.GenericSchema;
  /** True if images may be parts of a `multipart/form-data` body. */
  multipart?: boolean;
  /** Schema of the response, or the content type of one that no schema describes. */
  response: v.GenericSchema | 'application/json' | 'text/plain' | 'application/octet-stream';
  /** Schema of the response of an edge, or to a request in another format, instead of `response`; absent: the same. */
  or?: v.GenericSchema;
  /**
   * Schema of one event; present if the operation can stream (with `Accept: text/event-stream` or `stream: true`).
   */
  events?: v.GenericSchema;
  /** Schema of one line; present if the operation can answer in lines (with `Accept: application/x-ndjson`). */
  lines?: v.GenericSchema;
  /**
   * Tells when a caller needs an API key. `off loopback`: only if the server listens on an address other than loopback.
   */
  key: 'always' | 'off loopback' | 'never';
  /** Part of the contract that the operation belongs to; by default, the one of its format of errors. */
  part?: 'extractions' | 'bulk';
  /** True if the operation belongs to the server itself and to neither API, such as `GET /metrics`. */
  own?: true;
  /** Describes the status 503, with which the operation answers in the same form; absent if it never does. */
  unavailable?: string;
  /** HTTP statuses of the operation's errors, besides 401, 403 and 500, which follow from the other members. */
  errors: readonly number[];
}
