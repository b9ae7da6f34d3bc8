import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Manifest } from '../../runtime/compile/manifest.ts';
import type { StaticShape } from '../../runtime/compile/static-shapes.ts';
import type { EngineModel } from '../../runtime/engine/model.ts';
import type { RequestedPrecision } from '../../runtime/worker/compile-model.ts';
import { modelFixture } from '../fixture.ts';
import { compileFixture } from './fixtures.ts';
import type { PlainModel } from './oracle.ts';
import { compiledModel, publishedModel } from './plain-models.ts';
import { checkAgainstOracle } from './scenarios.ts';
import { TOY_KV, ToyForward } from './toy-forward.ts';

const RUNS = Number(process.env.ASSAY_PROPERTY_RUNS ?? 15);
const VOCAB = 512;
/**
 * Small shapes, so that the few tokens of a scenario take several runs, of both sizes, with and without a copy of the
 * cells.
 */
const FIXED: StaticShape[] = [4, 16].flatMap((chunk) => [8, 40, 96].map((past) => ({ chunk, past })));

/** The toy model needs no onnxruntime, so its scenarios are many: they test everything but the numbers. */
async function openToy(): Promise<{ model: Omit<EngineModel, 'independent'>; plain: PlainModel }> {
  const forward = new ToyForward(VOCAB);
  const manifest = { maxPromptLen: 512, contextLength: 90, kv: TOY_KV.layers, vocabSize: VOCAB } as unknown as Manifest;
  const model = { manifest, forward, close: async () => {} };
  return { model, plain: compiledModel(model) };
}

/**
 * `nearTie`: choices that are closer than this prove nothing. In floats, two computations of the same logits differ by
 * about 2e-6; where activations are rounded to 8 bits, as the published llama-int4 asks for itself (`accuracy_level`
 * 4), such a difference can move one by a whole level: logits of up to 18 were seen 0.3 apart, and 2e-5 without that
 * rounding. `secondGraph`: false makes a model use its graph with slots for all runs, as models do that are not small.
 */
describe.each<
  [
    fixture: string,
    precision: RequestedPrecision,
    published: string | null,
    nearTie: number,
    apart: number,
    shapes?: StaticShape[] | null,
    secondGraph?: boolean,
  ]
>([
  ['toy', 'float', null, 0, 1e-3],
  ['genai/qwen2', 'float', 'model.onnx', 1e-4, 1e-3],
  ['genai/gemma3', 'float', 'model.onnx', 1e-4, 1e-3, null, false],
  ['genai/llama-int4', 'keep', 'model.onnx', 0.5, 1],
  ['optimum/llama', 'float', 'onnx/model.onnx', 1e-4, 1e-3],
  ['genai/qwen3', 'int8', null, 0.02, 0.2, null, false],
  ['genai/qwen2', 'int8-blocks', null, 0.02, 0.2],
  ['genai/qwen2', 'int4', null, 0.02, 0.2],
  ['optimum/qwen2', 'float', 'onnx/model.onnx', 1e-4, 1e-3, FIXED],
  ['optimum/gemma3', 'float', null, 1e-4, 1e-3, FIXED],
  ['optimum/llama', 'int4', null, 0.5, 1, FIXED],
  ['optimum/qwen3', 'int8', null, 0.02, 0.2, FIXED],
])('%s as %s', (fixture, precision, published, nearTie, apart, shapes, secondGraph = true) => {
  let model: Omit<EngineModel, 'independent'>;
  let plain: PlainModel;
  const runs = fixture === 'toy' ? 20 * RUNS : RUNS;
  const over = shapes ? 'fixed shapes' : 'any shapes';
  beforeAll(async () => {
    if (fixture === 'toy') {
      ({ model, plain } = await openToy());
      return;
    }
    model = await compileFixture(fixture, precision, shapes ?? undefined, { secondGraph });
    plain = published ? await publishedModel(join(modelFixture(fixture), published)) : compiledModel(model);
  });
  afterAll(() => Promise.all(published ? [model.close(), plain.close()] : [model.close()]));

  test(
    `the engine answers as the oracle over ${over}, in ${runs} random scenarios`,
    {
      timeout: 60_000 + runs * 4000,
    },
    () => checkAgainstOracle(model, plain, runs, { nearTie, apart }),
  );
});
