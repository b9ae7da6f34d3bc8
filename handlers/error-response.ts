import { type ErrorType, errorStatus, type Face } from '../lib/error-status.ts';
import { AssayError, type ErrorCode } from '../lib/errors.ts';

/** The error body of both interfaces (decision-service.md, "Error body"). */
export interface ErrorBody {
  error: { type: ErrorType; message: string; param?: string; code: ErrorCode };
}

/** Anything thrown, as an `AssayError`: what is not one says nothing of itself to the caller. */
export function asAssayError(thrown: unknown): AssayError {
  if (thrown instanceof AssayError) return thrown;
  return new AssayError('internal_error', 'Something failed inside the server. The request id finds it in the log.', {
    cause: thrown,
  });
}

export function errorBody(error: AssayError, face: Face): ErrorBody {
  const { type } = errorStatus(error.code, face);
  const { message, param, code } = error;
  return { error: { type, message, ...(param === undefined ? {} : { param }), code } };
}

/** The one way from an error to a response. */
export function errorResponse(thrown: unknown, face: Face): Response {
  const error = asAssayError(thrown);
  const { status } = errorStatus(error.code, face);
  const headers = new Headers();
  if (status === 401) headers.set('www-authenticate', 'Bearer');
  if (status === 429) headers.set('retry-after', String(Math.max(1, Math.ceil(error.retryAfterSeconds ?? 1))));
  return Response.json(errorBody(error, face), { status, headers });
}
