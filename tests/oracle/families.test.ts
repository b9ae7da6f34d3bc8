import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EngineModel, kvShape } from '../../runtime/engine/model.ts';
import { logitsOf } from '../../runtime/engine/self-check/self-check.ts';
import { FAMILIES, supportTable } from './families.ts';
import { compileFixture, continueGreedily, goldenCases } from './fixtures.ts';
import { compiledModel } from './plain-models.ts';
import { checkAgainstOracle } from './scenarios.ts';

const RUNS = Number(process.env.ASSAY_PROPERTY_RUNS ?? 3);
const PAGE = join(import.meta.dirname, '../../docs/models.md');
const TABLE = /(<!-- written by tests\/oracle\/families.test.ts -->\n).*?(\n<!-- end -->)/s;

describe.each(FAMILIES)('$fixture', ({ fixture, path, shortText = 0 }) => {
  const folder = `../${fixture}`;
  let model: EngineModel;
  beforeAll(async () => {
    model = await compileFixture(folder, 'float');
  });
  afterAll(() => model.close());

  test(`answers as PyTorch does, on the ${path} path`, async () => {
    expect(model.manifest.path).toBe(path);
    for (const { prompt, greedy, logits } of goldenCases(folder)) {
      if (prompt.length <= shortText) continue;
      expect(await continueGreedily(model, prompt, greedy.length)).toEqual(greedy);
      const probe = { tokens: prompt, positions: [prompt.length - 1], stride: 1 };
      const [own = []] = logits ? await logitsOf(model.forward, kvShape(model.manifest), probe) : [];
      for (const [token, wanted] of (logits ?? []).entries()) expect(own[token]).toBeCloseTo(wanted, 3);
    }
  });

  test(
    `a branch answers in company and from the cache as it does alone, in ${RUNS} random scenarios`,
    {
      timeout: 60_000 + RUNS * 4000,
    },
    () => checkAgainstOracle(model, compiledModel(model), RUNS, { nearTie: 1e-4, apart: 1e-3 }),
  );
});

test.each(FAMILIES.filter(({ shortText }) => shortText))(
  '$fixture uses the rotary tables for short texts where its prompts fit them',
  async ({ fixture, shortText = 0 }) => {
    const folder = `../${fixture}`;
    const model = await compileFixture(folder, 'float', undefined, { maxPromptLen: shortText / 2 });
    expect(model.manifest.contextLength).toBe(shortText);
    const cases = goldenCases(folder).filter(({ prompt, greedy }) => prompt.length + greedy.length <= shortText);
    expect(cases.length).toBeGreaterThan(0);
    for (const { prompt, greedy } of cases) {
      expect(await continueGreedily(model, prompt, greedy.length)).toEqual(greedy);
    }
    await model.close();
  },
);

test('experts in 4 bits (QMoE) answer in company and from the cache as they do alone', async () => {
  const model = await compileFixture('../families/genai-int4/lfm2-moe', 'keep');
  // Products of 4 bits round activations, so logits in company are a little apart: seen up to 0.004 in random runs.
  await checkAgainstOracle(model, compiledModel(model), RUNS, { nearTie: 0.02, apart: 0.05 });
  await model.close();
});

test.each(['int8', 'int4'] as const)(
  'experts that are made %s here answer in company as they do alone',
  async (precision) => {
    const model = await compileFixture('../families/safetensors/lfm2-moe', precision);
    expect(model.manifest.precision).toBe(precision);
    await checkAgainstOracle(model, compiledModel(model), RUNS, { nearTie: 0.02, apart: 0.05 });
    await model.close();
  },
);

test('docs/models.md has the table of what is tested here', () => {
  const page = readFileSync(PAGE, 'utf8');
  const wanted = page.replace(TABLE, (_, begin, end) => `${begin}${supportTable()}${end}`);
  if (process.env.ASSAY_WRITE_DOCS) writeFileSync(PAGE, wanted);
  else expect(page, 'write it with ASSAY_WRITE_DOCS=1 npx vitest run tests/oracle/families.test.ts').toBe(wanted);
});
