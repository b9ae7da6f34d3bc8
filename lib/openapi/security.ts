import type { Operation } from './operations.ts';

/** Whether an operation needs a key, as OpenAPI writes it: `{}` means none is needed. */
export const SECURITY: Record<Operation['key'], object[]> = {
  always: [{ bearer: [] }],
  'off loopback': [{}, { bearer: [] }],
  never: [],
};
