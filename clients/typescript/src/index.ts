export { Assay, type AssayOptions, type CallOptions } from './client.ts';
export { ensureComplete, IncompleteError } from './complete.ts';
export {
  AssayConnectionError,
  AssayError,
  AssayStatusError,
  AssayTimeoutError,
  AuthenticationError,
  BadRequestError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
  UnprocessableEntityError,
} from './errors.ts';
export { CONTRACT_FINGERPRINT, CONTRACT_VERSION } from './generated/contract.ts';
export type * from './generated/types.gen.ts';
export { audioInput, imageInput } from './media.ts';
