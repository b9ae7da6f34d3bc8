/** The complete list of error codes of both APIs (docs/interface.md, D-17 and M-1). */
export const ERROR_CODES = [
  // the request itself
  'malformed_json',
  'request_too_large',
  'unsupported_media_type',
  'unknown_field',
  'missing_input',
  'conflicting_input',
  'missing_field',
  'invalid_type',
  'invalid_value',
  'duplicate_task_name',
  'alias_conflict',
  'unsupported_schema',
  'unsupported_modality',
  'unsupported_parameter',
  'input_too_long',
  'invalid_model_id',
  'route_not_found',
  'not_found',
  'method_not_allowed',
  // access
  'missing_api_key',
  'invalid_api_key',
  'model_not_allowed',
  'forbidden_origin',
  // the models in memory
  'model_not_found',
  'model_not_loaded',
  'model_in_use',
  'not_downloaded',
  'operation_in_progress',
  // capacity: try again later
  'rate_limited',
  'overloaded',
  // the server and its engine or upstreams
  'engine_failed',
  'backend_unreachable',
  'timeout',
  'hub_unreachable',
  'disk_full',
  'memory_full',
  'internal_error',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

export interface AssayErrorDetails {
  /** Path of the offending field, such as `tasks[2].options[0]`, or name of the offending header. */
  param?: string;
  /**
   * Seconds after which the client may try again: a whole number, at least 1, sent as `Retry-After`. Required for
   * `rate_limited` and `overloaded`.
   */
  retryAfterSeconds?: number;
  /** The underlying error. Logged, never sent. */
  cause?: unknown;
}

/**
 * Represents every error that Assay reports to a caller. `message` is sent: it says what is wrong and what to do next,
 * and never contains a stack trace, a file path or a prompt. The code and the called API determine the HTTP status
 * (`lib/error-status.ts`).
 */
export class AssayError extends Error {
  override readonly name = 'AssayError';
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, details: AssayErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.code = code;
    this.param = details.param;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

/** Tells whether something thrown is an `AssayError` with this code. */
export function isAssayError(thrown: unknown, code: ErrorCode): thrown is AssayError {
  return thrown instanceof AssayError && thrown.code === code;
}

/** Returns the message of a thrown `Error`; for any other value, its text. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
