import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const FOLDERS = '{lib,handlers,runtime,adapters,tests,examples,benchmarks,release}';
/**
 * Suites of many seconds: faults, restarts, many processes, property tests. `npm test` omits them, `npm run test:all`
 * runs all.
 */
const LONG = `${FOLDERS}/**/*.long.test.ts`;

export default defineConfig({
  // The examples import the package by its name, as its users do; tests take it from the source.
  resolve: { alias: { 'assay/node': source('adapters/node/index.ts'), assay: source('handlers/index.ts') } },
  test: {
    // All processors: most suites wait for processes that they start.
    maxWorkers: '100%',
    globalSetup: './tests/temporary-folder.ts',
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          include: [`${FOLDERS}/**/*.test.ts`],
          exclude: [...configDefaults.exclude, LONG],
          sequence: { groupOrder: 0 },
        },
      },
      // After the fast ones, so that a plain fault shows early.
      { extends: true, test: { name: 'long', include: [LONG], sequence: { groupOrder: 1 } } },
    ],
    // Processes start slowly on a busy machine, and property tests may be told to run for long.
    testTimeout: process.env.ASSAY_PROPERTY_RUNS ? 3_600_000 : 60_000,
    hookTimeout: 60_000,
    // A second, the default, is short there, too.
    expect: { poll: { timeout: 30_000 } },
  },
});
