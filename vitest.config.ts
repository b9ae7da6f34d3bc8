import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  // The examples import the package by its name, as its users do; tests take it from the source.
  resolve: { alias: { 'assay/node': source('adapters/node/index.ts'), assay: source('handlers/index.ts') } },
  test: {
    include: ['{lib,handlers,runtime,adapters,tests,examples,benchmarks}/**/*.test.ts'],
    testTimeout: 20_000,
    // A second, the default, is short for a process on a busy machine.
    expect: { poll: { timeout: 15_000 } },
  },
});
