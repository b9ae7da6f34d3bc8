import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Precision } from '../../lib/schema/precision.ts';
import { type EngineModel, openModel } from '../../runtime/engine/model.ts';
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

/** Name of the folder of a model in the blocks of a GGUF file, which is published as no graph to compare it with. */
export const PUBLISHED = 'gguf';

/**
 * Families that are asked alone and in company, but compared with no published graph: layers with a state, and heads of
 * Gemma's size, whose elements onnxruntime adds in an order that depends on the number of cells. `on` names the CPUs on
 * which a model is asked, if not on all: 4 bits where kernels take four rows, and large heads, which take ten seconds,
 * where kernels also add values of four cells at a time.
 */
export const ASKED: readonly { family: string; precision: Precision; on?: readonly string[] }[] = [
  { family: 'lfm2', precision: 'float' },
  { family: 'qwen3.5-text', precision: 'float' },
  { family: 'qwen3.5-text', precision: 'int4', on: ['neoverse-n1'] },
  { family: 'gemma3:256', precision: 'float', on: ['cortex-a57'] },
];

interface Checked {
  /** Mean difference of the logits from those of the published model, as a share of their mean magnitude. */
  error: number;
  /** `EngineModel.independent` */
  independent: boolean;
}

/** Compiles a model in a precision and opens it. */
export async function checkPrecision(fixture: string, file: string, precision: RequestedPrecision): Promise<Checked> {
  const folder = mkdtempSync(join(tmpdir(), 'assay-precision-'));
  try {
    await prepare(folder, fixture, file, precision);
    return await checkPrepared(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Compiles a model to a folder, and writes the logits of the published one there: the same files on every CPU. */
export async function prepare(
  folder: string,
  fixture: string,
  file: string,
  precision: RequestedPrecision,
): Promise<void> {
  const source = modelFixture(fixture);
  await compileModel({
    source,
    target: join(folder, 'compiled'),
    device: 'CPU',
    precision,
    maxPromptLen: 256,
    threads: 1,
  });
  const published = await publishedModel(join(source, file));
  const rows = await published.logits(TEXT);
  await published.close();
  writeFileSync(join(folder, 'logits.bin'), Buffer.concat(rows.map(({ buffer }) => new Uint8Array(buffer))));
}

/**
 * Opens a model that `prepare` wrote to the folder.
 *
 * @param use is given the model while it is open
 */
export async function checkPrepared(folder: string, use?: (model: EngineModel) => Promise<void>): Promise<Checked> {
  const model = await openModel(join(folder, 'compiled'), { threads: 1 });
  const got = (await compiledModel(model).logits(TEXT)).flatMap((row) => [...row]);
  await use?.(model);
  await model.close();
  const { buffer } = Uint8Array.from(readFileSync(join(folder, 'logits.bin')));
  let difference = 0;
  let magnitude = 0;
  for (const [index, logit] of new Float32Array(buffer).entries()) {
    difference += Math.abs(logit - got[index]!);
    magnitude += Math.abs(logit);
  }
  return { error: difference / magnitude, independent: model.independent };
}
