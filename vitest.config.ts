import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{lib,handlers,runtime,adapters,tests,examples}/**/*.test.ts'],
    testTimeout: 20_000,
  },
});
