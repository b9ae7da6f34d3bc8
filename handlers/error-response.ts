import type * as v from 'valibot';
import { type ErrorFormat, type ErrorStatus, errorStatus } from '../lib/error-status.ts';
import { AssayError, type ErrorCode } from '../lib/errors.ts';
import type { ErrorBody } from '../lib/schema/error-body.ts';
import type { InvalidValue } from '../lib/schema/systemone-response.ts';
import { PRIORITY_HEADER } from './call.ts';

/**
 * Converts anything thrown to an error response in the given format. An error that is not an `AssayError`, or whose
 * code this format never sends, is answered as `internal_error` without details.
 */
export function errorResponse(thrown: unknown, format: ErrorFormat): Response {
  const { error, status, type } = sendable(thrown, format);
  const headers = new Headers();
  if (status === 401) headers.set('www-authenticate', 'Bearer');
  if (status === 429) headers.set('retry-after', String(Math.max(1, Math.ceil(error.retryAfterSeconds ?? 1))));
  return Response.json(BODIES[format](error, type, status), { status, headers });
}

/**
 * Builds the JSON body of an error as the decision service and the model server send it (docs/interface.md, D-16).
 * `format` determines only the member `type`.
 */
export function errorBody(thrown: unknown, format: ErrorFormat): ErrorBody {
  const { error, type } = sendable(thrown, format);
  return bodyOf(error, type);
}

function bodyOf({ message, param, code }: AssayError, type: ErrorType): ErrorBody {
  return { error: { type, message, ...(param === undefined ? {} : { param }), code } };
}

type ErrorType = ErrorBody['error']['type'];

/** Functions that build the body of an error, by format. */
const BODIES: Record<ErrorFormat, (error: AssayError, type: ErrorType, status: number) => object> = {
  decisions: bodyOf,
  models: bodyOf,
  openai: (error, type) => ({ error: { ...bodyOf(error, type).error, param: error.param ?? null } }),
  google: ({ message }, type, status) => ({ error: { code: status, message, status: GOOGLE_STATUS[type] } }),
  workersai: (error) => ({
    result: null,
    success: false,
    errors: [{ code: RUN_CODES[error.code] ?? 3001, message: error.message }],
    messages: [],
  }),
  systemone: (error, type, status) => ({
    detail: status === 422 ? [invalidValue(error)] : { error_type: type, message: error.message },
    ...bodyOf(error, type),
  }),
};

/** Google's names for the types of errors (google.rpc.Code). */
const GOOGLE_STATUS: Record<ErrorType, string> = {
  invalid_request_error: 'INVALID_ARGUMENT',
  authentication_error: 'UNAUTHENTICATED',
  permission_error: 'PERMISSION_DENIED',
  not_found_error: 'NOT_FOUND',
  conflict_error: 'FAILED_PRECONDITION',
  rate_limit_error: 'RESOURCE_EXHAUSTED',
  server_error: 'INTERNAL',
};

/** The numbers of Workers AI's errors; 3001 for all others. */
const RUN_CODES: { readonly [C in ErrorCode]?: number } = {
  malformed_json: 6003,
  unsupported_media_type: 6003,
  unknown_field: 5006,
  missing_field: 5006,
  missing_input: 5006,
  invalid_type: 5006,
  invalid_value: 5006,
  unsupported_schema: 3030,
  unsupported_modality: 3030,
  input_too_long: 3036,
  request_too_large: 3036,
  model_not_found: 5007,
  model_not_loaded: 5007,
  missing_api_key: 10_000,
  invalid_api_key: 10_000,
  model_not_allowed: 10_000,
  forbidden_origin: 10_000,
  rate_limited: 3040,
  overloaded: 3040,
};

/** Describes an invalid value with its location, as FastAPI does. */
function invalidValue({ message, param = '', code }: AssayError): v.InferOutput<typeof InvalidValue> {
  if (param === PRIORITY_HEADER) return { loc: ['header', param], msg: message, type: code };
  const loc: (string | number)[] = ['body'];
  // Splits a path such as `questions.a[0]` or `questions["a b"].criteria` into names and indices.
  for (const [, name, index, quoted] of param.matchAll(/([A-Za-z_$][\w$]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/g)) {
    loc.push(name ?? (quoted === undefined ? Number(index) : JSON.parse(quoted)));
  }
  return { loc, msg: message, type: code };
}

/**
 * Converts anything thrown to an error that may be sent in this format. An error that is not an `AssayError`, or whose
 * code the format never sends, becomes `internal_error` without details.
 */
function sendable(thrown: unknown, format: ErrorFormat): ErrorStatus & { error: AssayError } {
  const status = thrown instanceof AssayError ? errorStatus(thrown.code, format) : undefined;
  // The cast is safe: there is a status only for an `AssayError`.
  if (status) return { error: thrown as AssayError, ...status };
  return { error: new AssayError('internal_error', INTERNAL_MESSAGE, { cause: thrown }), ...INTERNAL_ERROR };
}

/** Message of an error whose details are only logged. */
export const INTERNAL_MESSAGE = 'The server failed with an internal error. Search its log for the request id.';

const INTERNAL_ERROR: ErrorStatus = { status: 500, type: 'server_error' };
