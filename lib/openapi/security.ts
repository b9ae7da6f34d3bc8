import type { Operation } from './operations.ts';

/**
 * The OpenAPI `security` requirements of an operation for each value of `Operation.key`. The alternative `{}` means
 * that a call without a key is allowed.
 */
export const SECURITY: Record<Operation['key'], object[]> = {
  always: [{ bearer: [] }],
  'off loopback': [{}, { bearer: [] }],
  never: [],
};
