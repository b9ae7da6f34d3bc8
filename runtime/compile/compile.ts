import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Device } from '../../lib/backend.ts';
import { endResults } from '../onnx/end-results.ts';
import { gatherRows } from '../onnx/gather-rows.ts';
import { attentionNodes, couplesRows, findLayout, type Layout } from '../onnx/layout.ts';
import { attribute, DataType, dataLength, type Model } from '../onnx/model.ts';
import { keepWholePast, packBranches } from '../onnx/pack-branches.ts';
import { padRotaryTables } from '../onnx/pad-rotary.ts';
import { prune } from '../onnx/prune.ts';
import { readModel } from '../onnx/read-model.ts';
import type { StaticShape } from '../onnx/static/plain-attention.ts';
import { widened } from '../onnx/tensor-data.ts';
import { isHalf, toFloat32 } from '../onnx/to-float32.ts';
import { unusable } from '../onnx/unusable.ts';
import { WeightsWriter, writeModel } from '../onnx/write-model.ts';
import { hasInt8Products } from './cpu.ts';
import { COMPILER_VERSION, MANIFEST_FILE, type Manifest, type WeightForm } from './manifest.ts';
import type { Precision } from './precision.ts';
import { contextLength, publishedHeadSize, sourceFile } from './source.ts';
import { staticGraphs } from './static-graphs.ts';
import { staticContext, staticShapes } from './static-shapes.ts';
import { blockWeights, int4Weights } from './weights/int4.ts';
import { int8Embedding, int8Weights } from './weights/int8.ts';

export type { Precision } from './precision.ts';

export interface CompileOptions {
  /** Folder of the downloaded model, as published. Read only. */
  source: string;
  /** Empty or absent folder for the result. On an error what was written stays for the caller to remove. */
  target: string;
  device: Device;
  precision: Precision;
  maxPromptLen: number;
  /**
   * Cut into graphs over fixed shapes, which NPUs need (`static-graphs.ts`): the sizes that suit `maxPromptLen`, or these. Throws `engine_failed`
   * for a model without such a form.
   */
  fixedShapes?: 'auto' | readonly StaticShape[];
  /** Progress, in bytes of weights. */
  onStep?(step: CompileStep): void;
  signal?: AbortSignal;
}

export interface CompileStep {
  step: 'reading' | 'weights' | 'graph';
  done: number;
  total: number;
}

/** Inputs that share a scale, where weights are compiled for NPUs: the size that both compilers take. Source: measured, docs/devices.md. */
const DEVICE_BLOCK = 32;

const GRAPH_FILE = 'model.onnx';
const WEIGHTS_FILE = 'weights.bin';

/**
 * Makes of a published model what this machine runs best: branches packed and logits only where they are read, weights in the
 * form for the device. The same input gives the same bytes. Weights pass through one tensor at a time. Throws `engine_failed`
 * for a model that cannot be used.
 */
export async function compileModel(options: CompileOptions): Promise<Manifest> {
  const { source, target, device, maxPromptLen, onStep, signal } = options;
  const precision =
    options.precision === 'auto' ? bestPrecision(device, options.fixedShapes !== undefined) : options.precision;
  onStep?.({ step: 'reading', done: 0, total: 1 });
  const model = readModel(sourceFile(source, precision));
  const context = await contextLength(source, model);
  const layout = findLayout(model, await publishedHeadSize(source));
  const { fixedShapes } = options;
  const shapes = fixedShapes === 'auto' ? staticShapes(staticContext(maxPromptLen, context)) : fixedShapes;
  const { manifest, form, graphs } = shapes
    ? rewriteStatic(model, layout, precision, shapes)
    : rewrite(model, layout, precision);

  mkdirSync(target, { recursive: true });
  const weights = new WeightsWriter(target, WEIGHTS_FILE);
  // Parts of a model share their weights.
  const initializers = new Map(graphs.flatMap(({ model: { graph } }) => [...graph.initializers]));
  const tensors = Array.from(initializers.values(), widened);
  const total = tensors.reduce((sum, tensor) => sum + dataLength(tensor.data), 0);
  let done = 0;
  const protos = new Map<string, Uint8Array>();
  try {
    for (const tensor of tensors) {
      signal?.throwIfAborted();
      const proto = weights.write(tensor, (count) => {
        done += count;
        onStep?.({ step: 'weights', done, total });
      });
      protos.set(tensor.name, proto);
      await setImmediate(); // lets an abort and the progress messages through
    }
  } finally {
    weights.close();
  }
  onStep?.({ step: 'graph', done: total, total });
  for (const { file, model: part } of graphs) {
    const own = Array.from(part.graph.initializers.keys(), (name) => protos.get(name)!);
    writeModel(join(target, file), part, own);
  }
  const result: Manifest = {
    version: COMPILER_VERSION,
    device,
    form,
    maxPromptLen: Math.min(maxPromptLen, context),
    contextLength: Math.min(context, longestPast(shapes)),
    ...manifest,
  };
  writeFileSync(join(target, MANIFEST_FILE), `${JSON.stringify(result, null, 2)}\n`, { flush: true });
  return result;
}

/** The form in which this machine answers fastest. */
export function bestPrecision(device: Device, fixedShapes: boolean): 'int8' | 'int4' | 'keep' {
  if (fixedShapes) return 'int8';
  if (device !== 'CPU') return 'keep';
  return hasInt8Products() ? 'int8' : 'int4';
}

type GraphFacts = Pick<Manifest, 'path' | 'graph' | 'vocabSize' | 'inputs' | 'logits' | 'end' | 'kv' | 'static'>;

interface Rewritten {
  manifest: GraphFacts;
  form: WeightForm;
  graphs: { file: string; model: Model }[];
}

/** Branches packed in any length, for devices that take graphs as they are. */
function rewrite(model: Model, layout: Layout, precision: Exclude<Precision, 'auto'>): Rewritten {
  if (isHalf(model)) toFloat32(model);
  keepWholePast(model);
  const attention = couplesRows(model.graph) ? undefined : attentionNodes(model.graph, layout);
  const masks = attention ? packBranches(model, layout, attention) : [];
  if (attention) padRotaryTables(model, attention);
  const rows = gatherRows(model, layout, attention);
  const end = attention ? endResults(model) : undefined;
  const form = convertWeights(model, layout.tokens, precision);
  prune(model.graph);
  const { tokens, attentionMask, positions, logits, vocabSize, kv } = layout;
  return {
    form,
    graphs: [{ file: GRAPH_FILE, model }],
    manifest: {
      path: attention ? 'packed' : 'plain',
      graph: GRAPH_FILE,
      vocabSize,
      logits,
      ...(end ? { end } : {}),
      kv,
      inputs: {
        tokens,
        masks,
        ...(attentionMask ? { attentionMask } : {}),
        ...(positions ? { positions } : {}),
        ...(rows ? { rows } : {}),
      },
    },
  };
}

/** The positions that fixed shapes have cells for; unbounded without. */
function longestPast(shapes: readonly StaticShape[] = []): number {
  return shapes.length > 0 ? Math.max(...shapes.map(({ past }) => past)) : Number.POSITIVE_INFINITY;
}

/** Branches packed over fixed shapes. */
function rewriteStatic(
  model: Model,
  layout: Layout,
  precision: Exclude<Precision, 'auto'>,
  shapes: readonly StaticShape[],
): Rewritten {
  if (isHalf(model)) toFloat32(model);
  const attention = attentionNodes(model.graph, layout);
  const rows = attention && gatherRows(model, layout, attention);
  if (!rows) throw unusable('its attention or its head is not in a form that static graphs are made from');
  if (precision === 'int8' || precision === 'int4') {
    int8Embedding(model, layout.tokens);
    blockWeights(model, { bits: precision === 'int8' ? 8 : 4, size: DEVICE_BLOCK });
  }
  const form = formOf(model);
  const { graphs, masks, manifest } = staticGraphs(model, layout, rows, shapes);
  const { tokens, logits, vocabSize, kv } = layout;
  const inputs = { tokens, masks, positions: 'position_ids' };
  return {
    form,
    graphs,
    manifest: { path: 'static', graph: graphs[0]!.file, vocabSize, logits, kv, inputs, static: manifest },
  };
}

function convertWeights(model: Model, tokens: string, precision: Exclude<Precision, 'auto'>): WeightForm {
  if (precision === 'int8' || precision === 'int4') int8Embedding(model, tokens);
  if (precision === 'int8') int8Weights(model);
  if (precision === 'int4') int4Weights(model);
  return precision === 'keep' || precision === 'float' ? formOf(model) : precision;
}

function formOf({ graph }: Model): WeightForm {
  const blocks = graph.nodes.filter((node) => node.op === 'MatMulNBits');
  if (blocks.length > 0) return blocks.every((node) => attribute(node, 'bits') === 8) ? 'int8' : 'int4';
  return [...graph.initializers.values()].some((tensor) => tensor.dataType === DataType.int8) ? 'int8' : 'float';
}
