/** Names of the error codes of `OrtErrorCode`, in order. Source: onnxruntime_c_api.h, 1.30. */
const ORT_ERROR_CODES = [
  'ok',
  'fail',
  'invalid_argument',
  'no_such_file',
  'no_model',
  'engine_error',
  'runtime_exception',
  'invalid_protobuf',
  'model_loaded',
  'not_implemented',
  'invalid_graph',
  'ep_fail',
  'model_load_cancelled',
  'model_requires_compilation',
  'not_found',
] as const;
export type OrtErrorCode = (typeof ORT_ERROR_CODES)[number] | 'unknown';

/**
 * Reports that a call of onnxruntime's C API failed. `message` is onnxruntime's own and may contain paths, so it is
 * logged and shown by `assay doctor`, but never sent to a client.
 */
export class OrtError extends Error {
  override readonly name = 'OrtError';
  readonly code: OrtErrorCode;
  /** Name of the C function that failed. */
  readonly call: string;

  constructor(call: string, code: number, message: string) {
    super(message);
    this.call = call;
    this.code = ORT_ERROR_CODES[code] ?? 'unknown';
  }
}
