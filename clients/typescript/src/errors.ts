import type { ErrorDetails } from './generated/types.gen.ts';

/** Serves as the base of all errors of this package. */
export class AssayError extends Error {
  override readonly name: string = 'AssayError';
}

/**
 * Reports that there is no answer: the server cannot be reached, the connection broke, or the response is not Assay's.
 */
export class AssayConnectionError extends AssayError {
  override readonly name: string = 'AssayConnectionError';
}

/**
 * Reports that no answer came within the timeout. The request is not sent again, because the server may have done it.
 */
export class AssayTimeoutError extends AssayConnectionError {
  override readonly name: string = 'AssayTimeoutError';
}

/** Reports an error response. Branch on `code`; the message is for logs, not for end users. */
export class AssayStatusError extends AssayError {
  override readonly name: string = 'AssayStatusError';
  /** HTTP status. */
  readonly status: number;
  /** Type of the error, such as `invalid_request_error`; null if the response comes from a proxy and not from Assay. */
  readonly type: string | null;
  /** Code of the error, such as `invalid_value`; null if the response comes from a proxy and not from Assay. */
  readonly code: ErrorDetails['code'] | null;
  /** Path of the invalid field, such as `tasks[2].options[0]`; null if the error is about no field. */
  readonly param: string | null;
  /** Identifies the request in the server's log. */
  readonly requestId: string | null;
  /** Seconds to wait before a retry, if the server stated them; else null. */
  readonly retryAfter: number | null;

  constructor(response: Response, text: string) {
    const details = errorDetails(text);
    const requestId = response.headers.get('x-request-id');
    const message = details.message ?? (text.slice(0, 200) || response.statusText);
    super(`${response.status} ${details.code ?? ''}: ${message} (request ${requestId})`);
    this.status = response.status;
    this.type = details.type ?? null;
    this.code = details.code ?? null;
    this.param = details.param ?? null;
    this.requestId = requestId;
    this.retryAfter = retryAfter(response);
  }
}

/** Reports status 400: the request is malformed. */
export class BadRequestError extends AssayStatusError {
  override readonly name: string = 'BadRequestError';
}
/** Reports status 401: the key is missing or unknown. */
export class AuthenticationError extends AssayStatusError {
  override readonly name: string = 'AuthenticationError';
}
/** Reports status 403: the key may not use this model. */
export class PermissionDeniedError extends AssayStatusError {
  override readonly name: string = 'PermissionDeniedError';
}
/** Reports status 422: a value is invalid. */
export class UnprocessableEntityError extends AssayStatusError {
  override readonly name: string = 'UnprocessableEntityError';
}
/** Reports status 429 after all retries: too many requests. Wait `retryAfter` seconds. */
export class RateLimitError extends AssayStatusError {
  override readonly name: string = 'RateLimitError';
}
/** Reports a status of 5xx after all retries: the server failed. */
export class ServerError extends AssayStatusError {
  override readonly name: string = 'ServerError';
}

const BY_STATUS = new Map([
  [400, BadRequestError],
  [401, AuthenticationError],
  [403, PermissionDeniedError],
  [422, UnprocessableEntityError],
  [429, RateLimitError],
]);

/** Returns the error for a response that is not a success. */
export async function statusError(response: Response): Promise<AssayStatusError> {
  const text = await response.text().catch(() => '');
  const Kind = BY_STATUS.get(response.status) ?? (response.status >= 500 ? ServerError : AssayStatusError);
  return new Kind(response, text);
}

/** Returns the seconds of the `Retry-After` header; null if there is none, or if it is not a number. */
export function retryAfter(response: Response): number | null {
  const seconds = Number.parseFloat(response.headers.get('retry-after') ?? '');
  return Number.isFinite(seconds) ? Math.max(0, seconds) : null;
}

function errorDetails(text: string): Partial<ErrorDetails> {
  try {
    const body: unknown = JSON.parse(text);
    const details = (body as { error?: unknown } | null)?.error;
    return typeof details === 'object' && details !== null ? details : {};
  } catch {
    return {};
  }
}
