import type { Operation } from './operations.ts';

/** Returns whether an operation needs a key, in OpenAPI's form: `{}` means that none is needed. */
export const SECURITY: Record<Operation['key'], object[]> = {
  always: [{ bearer: [] }],
  'off loopback': [{}, { bearer: [] }],
  never: [],
};
