import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openModel } from '../../runtime/engine/model.ts';
import { compileModel, type RequestedPrecision } from '../../runtime/worker/compile-model.ts';
import { modelFixture } from '../fixture.ts';
import { compiledModel, publishedModel } from '../oracle/plain-models.ts';

const TEXT = [5, 300, 17, 401, 33, 256, 9, 120, 77];

/**
 * The allowed error of each precision against the published model, on any CPU. The bounds are about twice the measured
 * errors; a wrong scale or a transposed matrix causes more than 1, clamped sums 0.19 to 0.48.
 */
export const PRECISION_BOUNDS: readonly (readonly [
  fixture: string,
  file: string,
  precision: RequestedPrecision,
  bound: number,
])[] = [
  ['genai/qwen2', 'model.onnx', 'float', 1e-5],
  ['genai/gemma3', 'model.onnx', 'float', 1e-5],
  ['optimum/llama', 'onnx/model.onnx', 'float', 1e-5],
  ['genai/llama-int4', 'model.onnx', 'keep', 1e-5],
  ['genai/qwen2', 'model.onnx', 'int8', 0.06],
  ['genai/llama', 'model.onnx', 'int8', 0.06],
  ['genai/gemma3', 'model.onnx', 'int8', 0.16],
  ['optimum/qwen3', 'onnx/model.onnx', 'int8', 0.06],
  ['genai/llama-int4', 'model.onnx', 'int8', 0.08],
  ['genai/qwen2', 'model.onnx', 'int8-blocks', 0.06],
  ['genai/gemma3', 'model.onnx', 'int8-blocks', 0.1],
  ['genai/llama-int4', 'model.onnx', 'int8-blocks', 0.12],
  ['genai/llama', 'model.onnx', 'int4', 0.6],
  ['optimum/phi3', 'onnx/model.onnx', 'int4', 0.6],
];

const published = new Map<string, Promise<Float32Array[]>>();

/** Returns the logits of a published model, which is opened once: an emulated CPU takes seconds for that. */
function publishedLogits(file: string): Promise<Float32Array[]> {
  const read = async () => {
    const model = await publishedModel(file);
    return model.logits(TEXT).finally(() => model.close());
  };
  const known = published.get(file) ?? read();
  published.set(file, known);
  return known;
}

/**
 * Returns the mean difference of a precision's logits from the published model's, as a share of their mean magnitude.
 */
export async function precisionError(fixture: string, file: string, precision: RequestedPrecision): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'assay-precision-'));
  try {
    const source = modelFixture(fixture);
    await compileModel({ source, target: join(folder, 'out'), device: 'CPU', precision, maxPromptLen: 256 });
    const wanted = await publishedLogits(join(source, file));
    const compiled = compiledModel(await openModel(join(folder, 'out'), { threads: 1 }));
    const got = await compiled.logits(TEXT);
    await compiled.close();
    let difference = 0;
    let magnitude = 0;
    for (const [row, logits] of wanted.entries()) {
      for (const [token, logit] of logits.entries()) {
        difference += Math.abs(logit - got[row]![token]!);
        magnitude += Math.abs(logit);
      }
    }
    return difference / magnitude;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
