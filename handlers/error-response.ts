import { type Api, type ErrorStatus, errorStatus } from '../lib/error-status.ts';
import { AssayError } from '../lib/errors.ts';
import type { ErrorBody } from '../lib/schema/error-body.ts';

/** The one way from an error to a response. */
export function errorResponse(thrown: unknown, api: Api): Response {
  const { error, status, type } = sendable(thrown, api);
  const headers = new Headers();
  if (status === 401) headers.set('www-authenticate', 'Bearer');
  if (status === 429) headers.set('retry-after', String(Math.max(1, Math.ceil(error.retryAfterSeconds ?? 1))));
  return Response.json(bodyOf(error, type), { status, headers });
}

/** The error body of both interfaces (decision-service.md, "Error body"). */
export function errorBody(thrown: unknown, api: Api): ErrorBody {
  const { error, type } = sendable(thrown, api);
  return bodyOf(error, type);
}

function bodyOf({ message, param, code }: AssayError, type: ErrorBody['error']['type']): ErrorBody {
  return { error: { type, message, ...(param === undefined ? {} : { param }), code } };
}

/** Anything thrown as what an api sends: an error of another kind, or of the other api, says nothing of itself. */
function sendable(thrown: unknown, api: Api): ErrorStatus & { error: AssayError } {
  const status = thrown instanceof AssayError ? errorStatus(thrown.code, api) : undefined;
  if (status) return { error: thrown as AssayError, ...status };
  const message = 'Something failed inside the server. The request id finds it in the log.';
  return { error: new AssayError('internal_error', message, { cause: thrown }), ...INTERNAL_ERROR };
}

const INTERNAL_ERROR: ErrorStatus = { status: 500, type: 'server_error' };
