import type { ErrorCode } from './errors.ts';

/** The two interfaces: the decision service and the model server. They share codes, not always statuses. */
export const FACES = ['decisions', 'models'] as const;
export type Face = (typeof FACES)[number];

export const ERROR_TYPES = [
  'invalid_request_error',
  'authentication_error',
  'permission_error',
  'not_found_error',
  'conflict_error',
  'rate_limit_error',
  'server_error',
] as const;
export type ErrorType = (typeof ERROR_TYPES)[number];

/** What an error code becomes on the wire. */
export interface ErrorStatus {
  status: number;
  type: ErrorType;
}

/** Status and type of every code on each face (open-points.md: "Error body" of part A, and part B). */
export function errorStatus(code: ErrorCode, face: Face): ErrorStatus {
  const [decisions, models] = TABLE[code];
  return face === 'decisions' ? decisions : (models ?? decisions);
}

const bad = (status: number): ErrorStatus => ({ status, type: 'invalid_request_error' });
const unauthorized: ErrorStatus = { status: 401, type: 'authentication_error' };
const forbidden: ErrorStatus = { status: 403, type: 'permission_error' };
const notFound: ErrorStatus = { status: 404, type: 'not_found_error' };
const conflict: ErrorStatus = { status: 409, type: 'conflict_error' };
const later: ErrorStatus = { status: 429, type: 'rate_limit_error' };
const failed = (status: number): ErrorStatus => ({ status, type: 'server_error' });

/** On the decision service, then on the model server where that differs. */
const TABLE: Record<ErrorCode, readonly [ErrorStatus, ErrorStatus?]> = {
  malformed_json: [bad(400)],
  request_too_large: [bad(400), bad(413)],
  unsupported_media_type: [bad(400), bad(415)],
  unknown_field: [bad(400)],
  missing_input: [bad(400)],
  conflicting_input: [bad(400)],
  missing_field: [bad(422), bad(400)],
  invalid_type: [bad(422), bad(400)],
  invalid_value: [bad(422), bad(400)],
  duplicate_task_name: [bad(422), bad(400)],
  alias_conflict: [bad(422), bad(400)],
  unsupported_schema: [bad(422), bad(400)],
  unsupported_modality: [bad(422), bad(400)],
  unsupported_parameter: [bad(422), bad(400)],
  input_too_long: [bad(422), bad(400)],
  invalid_model_id: [bad(422), bad(400)],
  route_not_found: [notFound],
  method_not_allowed: [bad(405)],
  missing_api_key: [unauthorized],
  invalid_api_key: [unauthorized],
  model_not_allowed: [forbidden],
  forbidden_origin: [forbidden],
  model_not_found: [bad(422), notFound],
  model_not_loaded: [failed(500), conflict],
  model_in_use: [failed(500), conflict],
  not_downloaded: [failed(500), conflict],
  operation_in_progress: [failed(500), conflict],
  rate_limited: [later],
  overloaded: [later],
  engine_failed: [failed(500)],
  backend_unreachable: [failed(500)],
  timeout: [failed(500)],
  hub_unreachable: [failed(500), failed(502)],
  disk_full: [failed(500), failed(507)],
  internal_error: [failed(500)],
};
