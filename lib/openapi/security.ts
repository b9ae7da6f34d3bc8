import type { Operation } from './operations.ts';

/** The `security` of an operation in OpenAPI, by when it needs a key. `{}` means that no key is needed. */
export const SECURITY: Record<Operation['key'], object[]> = {
  always: [{ bearer: [] }],
  'off loopback': [{}, { bearer: [] }],
  never: [],
};
