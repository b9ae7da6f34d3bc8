import { join } from 'node:path';
import type { WeightForm } from '../../lib/schema/weight-form.ts';
import type { DecisionContract } from '../contracts/contract.ts';
import { RefusedContract } from '../contracts/published-files.ts';
import { Refused } from '../graph/config-keys.ts';
import { buildDecoder } from '../graph/decoder.ts';
import { readArchitecture } from '../graph/families.ts';
import type { Model } from '../onnx/format/model.ts';
import { readModel } from '../onnx/format/read-model.ts';
import { findLayout } from '../onnx/layout.ts';
import { chooseRotaryTables } from '../onnx/rewrites/choose-rotary.ts';
import { fuseEmbeddings } from '../onnx/rewrites/fuse-embeddings.ts';
import type { StaticShape } from '../onnx/rewrites/static/plain-attention.ts';
import { isHalf, toFloat32 } from '../onnx/to-float32.ts';
import { unusable } from '../onnx/unusable.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';
import { judgeFolder } from '../store/judge-folder.ts';
import { contextLength } from './context-length.ts';
import { readoutOf, sourceWeights, weightsFolder } from './decision-source.ts';
import type { Manifest } from './manifest.ts';
import { type PlannedGraphs, plannedGraphs } from './planned-graphs.ts';
import type { FixedPrecision } from './precision.ts';
import { ENCODER_FILE, rewritePacked } from './rewrite-packed.ts';
import { rewriteStatic } from './rewrite-static.ts';
import type { GraphFacts } from './rewritten-graphs.ts';
import { encoderGraph, isCheckpoint, publishedHeadSize, sourceGraphs } from './source.ts';
import { formOf } from './weight-conversion.ts';

const WEIGHTS_FILE = 'weights.bin';
const ENCODER_WEIGHTS_FILE = 'encoder.bin';

/** Holds the sizes that the graphs of a compiled model must support. */
export interface FormShape {
  /** Maximum number of tokens of a prompt. */
  maxPromptLen: number;
  /** Shapes of the static graphs. Absent for graphs that accept any number of tokens. */
  shapes?: readonly StaticShape[] | undefined;
  /**
   * Number of sequences that one run should be able to compute. Ignored for static graphs, and for models that can only
   * run one.
   */
  slots: number;
  /** Contract of a decision model; absent for a model that generates text. */
  contract?: DecisionContract | undefined;
}

/** Holds a published model, rewritten in memory to graphs in one weight form, which are ready to be written. */
export interface PlannedForm extends PlannedGraphs {
  facts: GraphFacts & Pick<Manifest, 'form' | 'contextLength' | 'readout'>;
  /** Weight form of the published model. */
  published: WeightForm;
}

/**
 * Rewrites the published graph in the folder `source` to one weight form, as static graphs if `shapes` are given. The
 * weights are only read when the result is written. Throws `engine_failed` for a model that cannot be compiled, or that
 * cannot be split into static graphs.
 */
export async function planForm(
  source: string,
  precision: FixedPrecision,
  { maxPromptLen, shapes, slots, contract }: FormShape,
): Promise<PlannedForm> {
  const { model, context, readout } = isCheckpoint(source)
    ? await writtenGraph(source, maxPromptLen, contract)
    : await publishedGraph(source, precision, { maxPromptLen, contract });
  const layout = findLayout(model, await publishedHeadSize(source));
  const published = formOf(model);
  const { facts, form, graphs } = shapes
    ? rewriteStatic(model, layout, precision, shapes)
    : rewritePacked(model, layout, precision, slots);
  return {
    facts: { ...facts, form, contextLength: Math.min(context, longestPast(shapes)), ...(readout ? { readout } : {}) },
    published,
    ...plannedGraphs(graphs, WEIGHTS_FILE),
  };
}

/**
 * Prepares the graph in the folder `source` that encodes images or audio, in 32-bit floats, with its weights as
 * published. Returns null if the model has none, or one that is not used here. Throws `engine_failed` for a graph that
 * cannot be read.
 */
export async function planEncoder(source: string): Promise<PlannedGraphs | null> {
  if (isCheckpoint(source)) return null;
  const { reads } = await judgeFolder(source);
  const encoder = reads && sourceGraphs(source, 'keep').embeddings && encoderGraph(source, reads);
  if (!encoder) return null;
  const model = readModel(encoder);
  if (isHalf(model)) toFloat32(model);
  return plannedGraphs([{ file: ENCODER_FILE, model }], ENCODER_WEIGHTS_FILE);
}

/** Holds the graph of a language model, which accepts token ids, and the number of positions that it supports. */
interface SourceGraph extends Pick<Manifest, 'readout'> {
  model: Model;
  context: number;
}

/**
 * Reads a published graph, joined with its separate embedding graph if it has one. Throws `engine_failed` for a
 * decision model with a layer of its own, which no published graph has.
 */
async function publishedGraph(
  source: string,
  precision: FixedPrecision,
  { maxPromptLen, contract }: Pick<FormShape, 'maxPromptLen' | 'contract'>,
): Promise<SourceGraph> {
  if (contract?.lastLayer) {
    throw unusable(
      `the last layer of a ${contract.info.name} model is added to its own weights, and its folder has an ONNX graph`,
      'Use the repository with its safetensors.',
    );
  }
  const { model: file, embeddings } = sourceGraphs(source, precision);
  const model = embeddings ? fuseEmbeddings(readModel(file), readModel(embeddings)) : readModel(file);
  chooseRotaryTables(model, maxPromptLen);
  return { model, context: await contextLength(source, model) };
}

/** Writes the graph of a checkpoint. Throws `engine_failed` for a family that is not known. */
async function writtenGraph(
  source: string,
  maxPromptLen: number,
  contract: DecisionContract | undefined,
): Promise<SourceGraph> {
  const config = await readBoundedJson(join(weightsFolder(source), 'config.json'), CONFIG_BOUNDS);
  try {
    const architecture = readArchitecture(config, maxPromptLen, contract?.lastLayer !== undefined);
    const readout = contract && (await readoutOf(source, contract));
    const model = buildDecoder(architecture, await sourceWeights(source), readout);
    const kind = readout && ('tokens' in readout ? 'labels' : 'layer');
    return { model, context: architecture.context, ...(kind ? { readout: kind } : {}) };
  } catch (error) {
    const refused = error instanceof Refused || error instanceof RefusedContract;
    throw refused ? unusable(error.message, 'Use another model.') : error;
  }
}

/**
 * Returns the largest number of past cells of the static shapes, which limits the context; unlimited without shapes.
 */
function longestPast(shapes: readonly StaticShape[] = []): number {
  return shapes.length > 0 ? Math.max(...shapes.map(({ past }) => past)) : Number.POSITIVE_INFINITY;
}
