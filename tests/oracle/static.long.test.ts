import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RequestedPrecision } from '../../runtime/compile/choose-precision.ts';
import type { StaticShape } from '../../runtime/compile/static-shapes.ts';
import { cellBytes } from '../../runtime/engine/cache/kv-shape.ts';
import { type EngineModel, kvShape } from '../../runtime/engine/model.ts';
import { logitError } from '../../runtime/engine/self-check/self-check.ts';
import type { KvType } from '../../runtime/graph/graph-builder.ts';
import { FAMILIES, type FamilyCase } from './families.ts';
import { compileFixture } from './fixtures.ts';
import { compiledModel } from './plain-models.ts';
import { checkAgainstOracle } from './scenarios.ts';

const RUNS = Number(process.env.ASSAY_PROPERTY_RUNS ?? 15);
/**
 * Small shapes, so that the few tokens of a scenario take several runs, of both sizes, with and without a copy of the
 * cells.
 */
const SHAPES: StaticShape[] = [4, 16].flatMap((chunk) => [8, 40, 96].map((past) => ({ chunk, past })));
/** Names which graphs run the fixed shapes. */
type Graphs = 'a graph each' | 'one graph';

const TEXT = Array.from({ length: 60 }, (_, index) => (index * 37 + 5) % 60);

describe.each<
  [fixture: string, precision: RequestedPrecision, kvType: KvType, graphs: Graphs, nearTie: number, apart: number]
>([
  ['optimum/qwen2', 'float', 'float32', 'a graph each', 1e-4, 1e-3],
  ['optimum/qwen2', 'float', 'float16', 'a graph each', 1e-4, 1e-3],
  ['optimum/qwen2', 'float', 'float32', 'one graph', 1e-4, 1e-3],
  ['optimum/qwen2', 'float', 'float16', 'one graph', 1e-4, 1e-3],
  ['optimum/gemma3', 'float', 'float32', 'a graph each', 1e-4, 1e-3],
  ['optimum/qwen3', 'int8', 'float32', 'a graph each', 0.02, 0.2],
  ['optimum/llama', 'int4', 'float32', 'a graph each', 0.5, 1],
])('%s as %s over fixed shapes, with KV in %s and %s', (fixture, precision, kvType, graphs, nearTie, apart) => {
  let model: EngineModel;
  beforeAll(async () => {
    model = await compileFixture(fixture, precision, SHAPES, { kvType, oneGraph: graphs === 'one graph' });
  });
  afterAll(() => model.close());

  test(`answers as the oracle in ${RUNS} random scenarios`, { timeout: 60_000 + RUNS * 4000 }, () =>
    checkAgainstOracle(model, compiledModel(model), RUNS, { nearTie, apart }),
  );
});

/**
 * Models without a static form: layers that keep a state, attention sinks, and published graphs that run as they are,
 * as those without config.json do.
 */
const WITHOUT_STATIC_FORM = /(lfm2.*|qwen3\.5.*|gpt-oss|genai\/.*)$/;
const hasStaticForm = ({ path, fixture }: FamilyCase): boolean =>
  path === 'packed' && !WITHOUT_STATIC_FORM.test(fixture);

/** The first fixture of each family. */
const ofEachFamily = [...Map.groupBy(FAMILIES.filter(hasStaticForm), ({ family }) => family).values()].map(
  ([one]) => one!,
);

test.each(ofEachFamily)('$family ($fixture) has a static form that equals the packed one', async ({ fixture }) => {
  const [packed, fixed] = [
    await compileFixture(`../${fixture}`, 'float'),
    await compileFixture(`../${fixture}`, 'float', SHAPES),
  ];
  const [wanted, got] = [await compiledModel(packed).logits(TEXT), await compiledModel(fixed).logits(TEXT)];
  await Promise.all([packed.close(), fixed.close()]);
  const largest = Math.max(...wanted.flatMap((row) => Array.from(row, Math.abs)));
  const apart = Math.max(
    ...wanted.flatMap((row, at) => Array.from(row, (logit, token) => Math.abs(logit - got[at]![token]!))),
  );
  expect(apart / largest).toBeLessThan(1e-5);
});

test('16-bit KV takes half the memory and stays near 32-bit KV', async () => {
  const [wide, half] = [
    await compileFixture('optimum/qwen2', 'float', SHAPES),
    await compileFixture('optimum/qwen2', 'float', SHAPES, { kvType: 'float16' }),
  ];
  const [wanted, got] = [await compiledModel(wide).logits(TEXT), await compiledModel(half).logits(TEXT)];
  await Promise.all([wide.close(), half.close()]);
  expect(cellBytes(kvShape(half.manifest))).toBe(cellBytes(kvShape(wide.manifest)) / 2);
  const error = logitError(wanted, got);
  expect(error).toBeGreaterThan(0);
  expect(error).toBeLessThan(0.005);
});

test('the starter model has a static form that equals the packed one', async () => {
  const starter = '../../../models/starter';
  const [packed, fixed] = [await compileFixture(starter, 'keep'), await compileFixture(starter, 'keep', SHAPES)];
  const [wanted, got] = [await compiledModel(packed).logits(TEXT), await compiledModel(fixed).logits(TEXT)];
  await Promise.all([packed.close(), fixed.close()]);
  expect(logitError(wanted, got)).toBeLessThan(0.05);
});

test.each(FAMILIES.filter((family) => !hasStaticForm(family)))(
  '$family ($fixture) has none, and compiling says why',
  async ({ fixture }) => {
    await expect(compileFixture(`../${fixture}`, 'float', SHAPES)).rejects.toMatchObject({
      code: 'engine_failed',
      message: expect.stringMatching(/static/),
    });
  },
);
