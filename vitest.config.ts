import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  // The examples import the package by its name, as its users do; tests take it from the source.
  resolve: { alias: { 'assay/node': source('adapters/node/index.ts'), assay: source('handlers/index.ts') } },
  test: {
    include: ['{lib,handlers,runtime,adapters,tests,examples,benchmarks}/**/*.test.ts'],
    // Processes start slowly on a busy machine, and property tests may be told to run for long.
    testTimeout: process.env.ASSAY_PROPERTY_RUNS ? 3_600_000 : 60_000,
    hookTimeout: 60_000,
    // A second, the default, is short there, too.
    expect: { poll: { timeout: 30_000 } },
  },
});
