import type { ErrorCode } from './errors.ts';

/**
 * The two APIs: the decision service and the model server. They share error codes, but a code may have a different
 * status in each.
 */
export const APIS = ['decisions', 'models'] as const;
export type Api = (typeof APIS)[number];

/**
 * Names a format of error responses: those of the decision service and the model server, those of OpenAI and System One
 * for `/v1/decisions` and `/v1/systemone`, that of Workers AI for its run paths, and that of Google, which OpenRouter's
 * clients read, too.
 */
export type ErrorFormat = Api | 'openai' | 'systemone' | 'workersai' | 'google';

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

/** Holds the HTTP status of an error code and its `type` in the error body. */
export interface ErrorStatus {
  status: number;
  type: ErrorType;
}

/**
 * Returns the HTTP status and the `type` of an error code in one format (docs/interface.md, D-17 and M-1); undefined
 * for a code that is never sent in this format.
 */
export function errorStatus(code: ErrorCode, format: ErrorFormat): ErrorStatus | undefined {
  const { decisions, models } = TABLE[code];
  switch (format) {
    // OpenAI's clients expect 400 for a bad value and 404 for an unknown model, as the model server answers.
    case 'openai':
    case 'google':
      return models ?? decisions;
    // System One servers answer 422 to an invalid body, 404 to an unknown model, 413 to a long body and 415 to one that
    // they cannot decode.
    case 'systemone':
      if (code === 'malformed_json' || code === 'unknown_field') return bad(422);
      if (code === 'model_not_found' || code === 'request_too_large' || code === 'unsupported_media_type')
        return models;
      return decisions ?? models;
    // Workers AI answers 400 to a request that breaks the schema, and 422 to one that the model refuses.
    case 'workersai': {
      const { decisions, models = decisions } = TABLE[code];
      if (code === 'input_too_long') return bad(413);
      return code === 'unsupported_schema' || code === 'unsupported_modality' ? bad(422) : models;
    }
    default:
      return TABLE[code][format];
  }
}

const bad = (status: number): ErrorStatus => ({ status, type: 'invalid_request_error' });
const unauthorized: ErrorStatus = { status: 401, type: 'authentication_error' };
const forbidden: ErrorStatus = { status: 403, type: 'permission_error' };
const notFound: ErrorStatus = { status: 404, type: 'not_found_error' };
const conflict: ErrorStatus = { status: 409, type: 'conflict_error' };
const later: ErrorStatus = { status: 429, type: 'rate_limit_error' };
const failed = (status: number): ErrorStatus => ({ status, type: 'server_error' });

const TABLE: Record<ErrorCode, { readonly decisions?: ErrorStatus; readonly models?: ErrorStatus }> = {
  malformed_json: { decisions: bad(400), models: bad(400) },
  request_too_large: { decisions: bad(400), models: bad(413) },
  unsupported_media_type: { decisions: bad(400), models: bad(415) },
  unknown_field: { decisions: bad(400), models: bad(400) },
  missing_input: { decisions: bad(400) },
  conflicting_input: { decisions: bad(400) },
  missing_field: { decisions: bad(422), models: bad(400) },
  invalid_type: { decisions: bad(422), models: bad(400) },
  invalid_value: { decisions: bad(422), models: bad(400) },
  duplicate_task_name: { decisions: bad(422) },
  alias_conflict: { decisions: bad(422), models: bad(400) },
  unsupported_schema: { decisions: bad(422), models: bad(400) },
  unsupported_modality: { decisions: bad(422), models: bad(400) },
  unsupported_parameter: { decisions: bad(422), models: bad(400) },
  input_too_long: { decisions: bad(422), models: bad(400) },
  invalid_model_id: { models: bad(400) },
  route_not_found: { decisions: notFound, models: notFound },
  not_found: { models: notFound },
  method_not_allowed: { decisions: bad(405), models: bad(405) },
  missing_api_key: { decisions: unauthorized, models: unauthorized },
  invalid_api_key: { decisions: unauthorized, models: unauthorized },
  model_not_allowed: { decisions: forbidden, models: forbidden },
  forbidden_origin: { decisions: forbidden, models: forbidden },
  model_not_found: { decisions: bad(422), models: notFound },
  model_not_loaded: { decisions: failed(500), models: conflict },
  model_in_use: { models: conflict },
  not_downloaded: { models: conflict },
  operation_in_progress: { models: conflict },
  rate_limited: { decisions: later, models: later },
  overloaded: { decisions: later, models: later },
  engine_failed: { decisions: failed(500), models: failed(500) },
  backend_unreachable: { decisions: failed(500), models: failed(500) },
  timeout: { decisions: failed(500), models: failed(500) },
  hub_unreachable: { models: failed(502) },
  disk_full: { models: failed(507) },
  memory_full: { decisions: failed(500), models: failed(507) },
  internal_error: { decisions: failed(500), models: failed(500) },
};
