import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const FOLDERS = '{lib,handlers,runtime,adapters,tests,examples,benchmarks,release}';
/**
 * Suites of many seconds: faults, restarts, many processes, property tests. `npm test` omits them, `npm run test:all`
 * runs all.
 */
const LONG = `${FOLDERS}/**/*.long.test.ts`;

/** Suites whose files are small and which take long. */
const SMALL_AND_LONG =
  /chaos\.long|jevcompat\.long|extractions\.long|plugins\/|conformance\/in-|stop\.long|package\.long|alone\.long/;

/** Starts these first, or one of them would run alone at the end; then the largest files, as Vitest does. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const groups = Map.groupBy(await super.sort(files), ({ project }) => project.name);
    const last = ({ moduleId }: TestSpecification) => Number(!SMALL_AND_LONG.test(moduleId));
    return [...groups.values()].flatMap((group) => group.sort((a, b) => last(a) - last(b)));
  }
}

export default defineConfig({
  // The examples import the package by its name, as its users do; tests take it from the source.
  resolve: { alias: { 'assay/node': source('adapters/node/index.ts'), assay: source('handlers/index.ts') } },
  test: {
    // One more than processors: most suites wait for processes that they start, which leaves processors idle.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    globalSetup: './tests/temporary-folder.ts',
    // In CI, a race that only a busy machine shows does not refuse a change: the test runs again, and the end of the
    // run names it. A random input that failed has failed.
    retry: process.env.CI ? { count: 1, condition: /^(?!Property failed|seed )/ } : 0,
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
