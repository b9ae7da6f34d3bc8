import { defineConfig } from 'vitest/config';

/** `npm run test:published`: with a published model, which takes minutes and gigabytes; not in `npm test`. */
export default defineConfig({
  test: { include: ['tests/published/*.published.ts'], testTimeout: 1_200_000, hookTimeout: 3_600_000 },
});
