import { expect, test } from 'vitest';
import { FAMILIES } from './families.ts';
import { compileFixture } from './fixtures.ts';
import { compiledModel } from './plain-models.ts';
import { checkAgainstOracle } from './scenarios.ts';

/**
 * One family for each way of running branches; `ASSAY_PROPERTY_RUNS=300 npx vitest run tests/oracle/families.test.ts`
 * runs all.
 */
const LONG_RUNS = [
  'families/genai/gemma2',
  'families/optimum/nemotron',
  'families/genai/lfm2',
  'families/genai/qwen3.5',
];

test.each(LONG_RUNS)('%s answers as the oracle in 40 random scenarios', { timeout: 600_000 }, async (fixture) => {
  expect(FAMILIES.map((one) => one.fixture)).toContain(fixture);
  const model = await compileFixture(`../${fixture}`, 'float');
  await checkAgainstOracle(model, compiledModel(model), 40, { nearTie: 1e-4, apart: 1e-3 });
  await model.close();
});
