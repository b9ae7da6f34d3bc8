import * as v from 'valibot';
import { AssayError, ERROR_CODES, type ErrorCode } from '../../../lib/errors.ts';
import { VERSION } from '../../../lib/version.ts';

/** Reports that an upstream could not answer a request that may be valid, so another upstream may be tried. */
export class UpstreamFault extends Error {
  override readonly name: string = 'UpstreamFault';
  /** Error for the caller if no other upstream answers either. */
  readonly error: AssayError;
  /**
   * True if the upstream is at fault. False if it is healthy, but busy, lacks the model, or has ended a stream
   * that the caller did not read.
   */
  readonly broken: boolean;

  constructor(error: AssayError, broken: boolean) {
    super(error.message, { cause: error });
    this.error = error;
    this.broken = broken;
  }
}

/** Reports that an upstream has no such route, because it runs another version of Assay. */
export class OtherVersion extends UpstreamFault {
  constructor() {
    const message =
      `The boxes run another version of Assay than this edge (${VERSION}), which cannot send them this request. ` +
      'Update both to the same version.';
    super(new AssayError('backend_unreachable', message), false);
  }
}

const ErrorBody = v.object({
  error: v.object({
    code: v.picklist(ERROR_CODES),
    message: v.string(),
    // OpenAI's error bodies have `param: null` if no field is at fault.
    param: v.nullish(v.string()),
  }),
});

/** Error codes with a status below 500 that are caused by the upstream's configuration or state, not by the request. */
const NOT_OF_THE_REQUEST: ReadonlySet<ErrorCode> = new Set([
  'missing_api_key',
  'invalid_api_key',
  'model_not_allowed',
  'forbidden_origin',
  'method_not_allowed',
]);

/**
 * Returns the fault, with `backend_unreachable` for the caller, of an upstream that cannot be reached, refuses this
 * edge, or sends an invalid answer. `cause` is for the log.
 */
export function unreachable(cause: unknown): UpstreamFault {
  const message = 'No box can be reached right now. Try again in some seconds.';
  return new UpstreamFault(new AssayError('backend_unreachable', message, { cause }), true);
}

/** Returns the error in an upstream's error body. Returns null if `text` is not an error body. */
export function readErrorBody(text: string): { code: ErrorCode; message: string; param: string | undefined } | null {
  try {
    const { code, message, param } = v.parse(ErrorBody, JSON.parse(text)).error;
    return { code, message, param: param ?? undefined };
  } catch {
    return null;
  }
}

/**
 * Returns the error to throw for an upstream's error response. That is an `UpstreamFault` if another upstream may
 * answer: for status 429, status 5xx except `timeout`, a model that only this one lacks, a code in
 * `NOT_OF_THE_REQUEST`, or a body that is not an error body. Otherwise it is the upstream's error, for the caller.
 *
 * @param retryAfter the response's Retry-After header, in seconds; for status 429
 */
export function upstreamError(status: number, text: string, retryAfter: string | null): UpstreamFault | AssayError {
  const body = readErrorBody(text);
  if (!body) return unreachable(new Error(`status ${status} without an error body`));
  const { code, message, param } = body;
  if (code === 'route_not_found') return new OtherVersion();
  if (NOT_OF_THE_REQUEST.has(code)) return unreachable(new Error(`the box answered ${code}`));
  if (status === 429) {
    const busy = 'All boxes are busy. Try again after the time in Retry-After.';
    const seconds = Number(retryAfter);
    return new UpstreamFault(
      new AssayError('overloaded', busy, { retryAfterSeconds: seconds >= 1 && seconds < 86_400 ? seconds : 1 }),
      false,
    );
  }
  const error = new AssayError(code, message, param === undefined ? {} : { param });
  if (code === 'model_not_loaded' || code === 'model_not_found') return new UpstreamFault(error, false);
  return status >= 500 ? failure(error) : error;
}

/**
 * Returns an error with which an upstream failed a request as an `UpstreamFault`, but `timeout` unchanged: the request
 * would take as long on another upstream.
 */
export function failure(error: AssayError): UpstreamFault | AssayError {
  return error.code === 'timeout' ? error : new UpstreamFault(error, true);
}
