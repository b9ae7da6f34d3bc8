import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMPILER_VERSION } from '../../runtime/compile/manifest.ts';
import { int4Weights } from '../../runtime/compile/weights/blocks.ts';
import { int8Embedding, int8Weights } from '../../runtime/compile/weights/int8.ts';
import { readModel } from '../../runtime/onnx/format/read-model.ts';
import { prune } from '../../runtime/onnx/format/subgraph.ts';
import { widened } from '../../runtime/onnx/format/tensor-data.ts';
import { WeightsWriter, writeModel } from '../../runtime/onnx/format/write-model.ts';
import { toFloat32 } from '../../runtime/onnx/to-float32.ts';
import { compileModel, type RequestedPrecision } from '../../runtime/worker/compile-model.ts';
import { qwen2Config, writeCheckpoint } from './checkpoint.ts';
import { writeGgufModel } from './gguf-model.ts';
import { Noise } from './noise.ts';
import { writeRandomModel } from './random-model.ts';
import { SHAPES, type ShapeName } from './shapes.ts';

/** Folder in which models are kept between runs; about 5 GB in all. */
const CACHE = process.env.ASSAY_BENCHMARK_MODELS ?? join(tmpdir(), 'assay-benchmark-models');

/**
 * Returns the folder of a compiled random model. Compiles the model if the cache does not have it. `slots` is the
 * number of sequences in one run of the model; if absent, the compiler's default.
 */
export function compiledRandomModel(shape: ShapeName, precision: RequestedPrecision, slots?: number): Promise<string> {
  const name = slots === undefined ? precision : `${precision}-slots${slots}`;
  return cached(`${shape}-${name}-v${COMPILER_VERSION}`, async (target) => {
    const source = await published(shape);
    const { context } = SHAPES[shape];
    const more = slots === undefined ? {} : { slots };
    await compileModel({ source, target, device: 'CPU', precision, maxPromptLen: context, ...more });
  });
}

/** Returns the GGUF file of a random model for llama.cpp. Writes the file if the cache does not have it. */
export async function ggufRandomModel(shape: ShapeName, weights: 'q8_0' | 'q4_0'): Promise<string> {
  const folder = await cached(`${shape}-gguf-${weights}`, async (target) => {
    writeGgufModel(join(target, 'model.gguf'), SHAPES[shape], weights, new Noise(12345));
  });
  return join(folder, 'model.gguf');
}

/**
 * Returns the folder of a random model for transformers.js. The graph is as published, but the weights have the number
 * format of Assay's compiled model, so only the runtimes differ. int8: a scale for each token of the activations and
 * for each output column of the weights; int4: blocks of 128 weights.
 */
export function transformersRandomModel(shape: ShapeName, precision: 'int8' | 'int4'): Promise<string> {
  return cached(`${shape}-transformers-${precision}-v${COMPILER_VERSION}`, async (target) => {
    const model = readModel(join(await published(shape), 'model.onnx'));
    toFloat32(model);
    int8Embedding(model, 'input_ids');
    if (precision === 'int8') int8Weights(model);
    else int4Weights(model);
    prune(model.graph);
    const folder = join(target, 'onnx');
    mkdirSync(folder);
    const writer = new WeightsWriter(folder, 'model.onnx_data');
    const tensors = Array.from(model.graph.initializers.values(), (tensor) => writer.write(widened(tensor), () => {}));
    writer.close();
    writeModel(join(folder, 'model.onnx'), model, tensors);
    const config = {
      ...qwen2Config(SHAPES[shape]),
      'transformers.js_config': { use_external_data_format: true },
    };
    writeFileSync(join(target, 'config.json'), JSON.stringify(config));
    writeFileSync(join(target, 'generation_config.json'), '{}');
  });
}

/**
 * Returns the folder of the starter model, compiled with its published weights (block-quantized to 4 bits). `path`
 * selects the packed path or the static path, which has fixed shapes.
 */
export function compiledStarter(path: 'packed' | 'static'): Promise<string> {
  return cached(`starter-${path}-v${COMPILER_VERSION}`, (target) => compileBlocks(STARTER, target, path, 'keep'));
}

/**
 * Returns the folder of a compiled random model of the Qwen2.5-0.5B shape, from a checkpoint, in 4 bits. `path` selects
 * the packed path or the static path, which has fixed shapes.
 */
export async function compiledBlockModel(path: 'packed' | 'static'): Promise<string> {
  const source = await cached('qwen2.5-0.5b-checkpoint', async (target) => {
    writeCheckpoint(target, SHAPES['qwen2.5-0.5b'], new Noise(12345));
  });
  return cached(`qwen2.5-0.5b-${path}-v${COMPILER_VERSION}`, (target) => compileBlocks(source, target, path, 'int4'));
}

const STARTER = join(import.meta.dirname, '../../models/starter');

async function compileBlocks(
  source: string,
  target: string,
  path: 'packed' | 'static',
  precision: 'keep' | 'int4',
): Promise<void> {
  const shapes = path === 'static' ? { fixedShapes: 'auto' as const } : {};
  await compileModel({ source, target, device: 'CPU', precision, maxPromptLen: 2048, ...shapes });
}

function published(shape: ShapeName): Promise<string> {
  return cached(shape, async (target) => writeRandomModel(target, SHAPES[shape]));
}

/**
 * Returns the cache folder with this name. If it does not exist, `write` fills a temporary folder, which is then
 * renamed. An interrupted run therefore leaves no incomplete folder.
 */
async function cached(name: string, write: (target: string) => Promise<unknown>): Promise<string> {
  const target = join(CACHE, name);
  if (existsSync(target)) return target;
  const partial = `${target}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true });
  await write(partial);
  renameSync(partial, target);
  return target;
}
