import { join } from 'node:path';
import { at } from '../../lib/at.ts';
import type { Precision } from '../../lib/schema/precision.ts';
import type { DecisionContract } from '../contracts/contract.ts';
import { RefusedContract } from '../contracts/published-files.ts';
import { Refused } from '../graph/config-keys.ts';
import { buildDecoder } from '../graph/decoder.ts';
import { readArchitecture } from '../graph/families.ts';
import { DeviceCuts, type KvType } from '../graph/graph-builder.ts';
import { onnxWeights } from '../graph/onnx.ts';
import { dataLength, type OnnxModel } from '../onnx/format/model.ts';
import { readModel } from '../onnx/format/read-model.ts';
import { prune } from '../onnx/format/subgraph.ts';
import { attentionNodes, couplesRows, findLayout, type GraphLayout } from '../onnx/layout.ts';
import { addAttentionSlots } from '../onnx/rewrites/attention-slots.ts';
import { endResults } from '../onnx/rewrites/end-results.ts';
import { fuseEmbeddings } from '../onnx/rewrites/fuse-embeddings.ts';
import { gatherColumns } from '../onnx/rewrites/gather-columns.ts';
import { gatherRows } from '../onnx/rewrites/gather-rows.ts';
import { keepWholePast, packBranches } from '../onnx/rewrites/pack-branches.ts';
import { packStates } from '../onnx/rewrites/pack-states.ts';
import { chooseRotaryTables, padRotaryTables } from '../onnx/rewrites/rotary-tables.ts';
import { isHalf, toFloat32 } from '../onnx/to-float32.ts';
import { reasonInUnusable, unusable } from '../onnx/unusable.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../store/bounded-file.ts';
import { judgeFolder } from '../store/judge-folder.ts';
import type { FixedPrecision } from './choose-precision.ts';
import { contextLength } from './context-length.ts';
import type { Manifest } from './manifest.ts';
import { type GraphFile, type PlannedGraphs, plannedGraphs } from './planned-graphs.ts';
import {
  encoderGraph,
  isCheckpoint,
  publishedHeadSize,
  readoutOf,
  sourceGraphs,
  sourceWeights,
  weightsFolder,
} from './source.ts';
import { type DeviceModel, staticGraphs } from './static-graphs.ts';
import type { StaticShape } from './static-shapes.ts';
import { convertWeights, floatProducts, NO_BLOCKS, precisionOf } from './weight-conversion.ts';
import { blockWeights } from './weights/blocks.ts';
import { int8Embedding } from './weights/int8.ts';
import { stackProducts } from './weights/stack.ts';

const WEIGHTS_FILE = 'weights.bin';
const ENCODER_WEIGHTS_FILE = 'encoder.bin';

/** Holds the sizes that the graphs of a compiled model must support. */
export interface ModelShape {
  /** Maximum number of tokens of a prompt. */
  maxPromptLen: number;
  /** Shapes of the static graphs. Absent for graphs that accept any number of tokens. */
  shapes?: readonly StaticShape[] | undefined;
  /**
   * Number of sequences that one run should be able to compute. Ignored for static graphs, and for models that can only
   * run one.
   */
  slots: number;
  /** Number of threads that may compute the graphs. Default: 1. */
  threads?: number;
  /** Contract of a decision model; absent for a model that generates text. */
  contract?: DecisionContract | undefined;
}

/** Holds a published model, rewritten in memory to graphs in one precision, which are ready to be written. */
export interface PlannedModel extends PlannedGraphs {
  facts: GraphFacts & Pick<Manifest, 'precision' | 'contextLength' | 'readout'>;
  /** Precision of the published model. */
  published: Precision;
  /** Reason why the published graph runs, and not one that is written here; null if one is. */
  foreign: string | null;
}

/**
 * Rewrites the published graph in the folder `source` to one precision, as static graphs if `shapes` are given. The
 * weights are only read when the result is written. Throws `engine_failed` for a model that cannot be compiled, or that
 * has no static form.
 */
export async function planModel(
  source: string,
  requested: FixedPrecision,
  { maxPromptLen, shapes, slots, threads = 1, contract }: ModelShape,
): Promise<PlannedModel> {
  const graph = isCheckpoint(source)
    ? await writtenGraph(source, { maxPromptLen, contract })
    : await publishedGraph(source, requested, { maxPromptLen, contract });
  const { model, context, readout, foreign = null } = graph;
  const layout = findLayout(model, await publishedHeadSize(source));
  const published = precisionOf(model);
  const { facts, precision, graphs } = shapes
    ? rewriteStatic(graph, layout, requested, shapes)
    : rewritePacked(model, layout, requested, { slots, threads });
  return {
    facts: {
      ...facts,
      precision,
      contextLength: Math.min(context, longestPast(shapes)),
      ...(readout ? { readout } : {}),
    },
    published,
    foreign,
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
  model: OnnxModel;
  context: number;
  /** Writes the same for devices; absent for a published graph. */
  forDevices?: (cuts: DeviceCuts) => OnnxModel;
  /** Reason why it is a published graph; absent for one that is written here. */
  foreign?: string;
}

/**
 * Writes the graph of a model that is published as a graph, from the weights in it. Where that is not possible, returns
 * the published graph, joined with its separate embedding graph if it has one, and why. Throws `engine_failed` for a
 * decision model with a layer of its own, which no published graph has.
 */
async function publishedGraph(
  source: string,
  requested: FixedPrecision,
  { maxPromptLen, contract }: Pick<ModelShape, 'maxPromptLen' | 'contract'>,
): Promise<SourceGraph> {
  if (contract?.lastLayer) {
    throw unusable(
      `the last layer of a ${contract.info.name} model is added to its own weights, and its folder has an ONNX graph`,
      USE_SAFETENSORS,
    );
  }
  const { model: file, embeddings } = sourceGraphs(source, requested);
  const read = readModel(file);
  const config = await readBoundedJson(join(source, 'config.json'), CONFIG_BOUNDS);
  const own = embeddings ? 'it reads images or audio' : graphOfWeights(read, config, maxPromptLen);
  if (typeof own !== 'string') return own;
  const model = embeddings ? fuseEmbeddings(read, readModel(embeddings)) : read;
  chooseRotaryTables(model, maxPromptLen);
  return { model, context: await contextLength(source, model), foreign: own };
}

const USE_SAFETENSORS = 'Use the repository with its safetensors.';
const LONGEST_REASON = 300;

/** Writes the graph that `config` describes with the weights of a published one; returns why if it cannot. */
function graphOfWeights({ graph }: OnnxModel, config: unknown, maxPromptLen: number): SourceGraph | string {
  if (config === undefined) return 'its folder has no config.json';
  try {
    const { architecture, weights } = onnxWeights(graph, readArchitecture(config, maxPromptLen));
    const write = (cuts?: DeviceCuts) => buildDecoder(architecture, weights, undefined, cuts);
    return { model: write(), forDevices: write, context: architecture.context };
  } catch (error) {
    const why = error instanceof Refused ? error.message : reasonInUnusable(error);
    if (why === undefined) throw error;
    // Names in it are the file's, and of any length.
    return why.replace(/; .*$/su, '').slice(0, LONGEST_REASON);
  }
}

/** Writes the graph of a checkpoint. Throws `engine_failed` for a family that is not known. */
export async function writtenGraph(
  source: string,
  { maxPromptLen, contract }: Pick<ModelShape, 'maxPromptLen' | 'contract'>,
): Promise<SourceGraph> {
  const config = await readBoundedJson(join(weightsFolder(source), 'config.json'), CONFIG_BOUNDS);
  try {
    const architecture = readArchitecture(config, maxPromptLen, contract?.lastLayer !== undefined);
    const readout = contract && (await readoutOf(source, contract));
    const weights = await sourceWeights(source);
    const write = (cuts?: DeviceCuts) => buildDecoder(architecture, weights, readout, contract?.whole ?? cuts);
    const kind = readout && ('tokens' in readout ? 'labels' : 'layer');
    return { model: write(), forDevices: write, context: architecture.context, ...(kind ? { readout: kind } : {}) };
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

const GRAPH_FILE = 'model.onnx';
const BATCH_FILE = 'batch.onnx';
/**
 * Maximum bytes of weights of a model that counts as small. A small model is opened a second time, with a graph for
 * runs of a single sequence.
 */
const SMALL_WEIGHTS = 64 << 20;

/** File name of the media encoder: the graph that computes features of images or audio. */
const ENCODER_FILE = 'encoder.onnx';

/**
 * Rewrites a graph in place so that it accepts packed branches and any number of tokens, for devices that accept
 * dynamic shapes. Without fused attention, the graph computes one branch at a time instead (`plain`). Returns that
 * graph, or a copy with attention slots if `slots` is above 1 and the graph can have them; for a small model, both.
 * Throws `engine_failed` for a model that cannot be rewritten.
 */
function rewritePacked(
  model: OnnxModel,
  layout: GraphLayout,
  requested: FixedPrecision,
  { slots, threads }: { slots: number; threads: number },
): Rewritten {
  if (isHalf(model)) toFloat32(model);
  keepWholePast(model);
  const attention = couplesRows(model.graph) ? undefined : attentionNodes(model.graph, layout);
  if (layout.states.length > 0 && !attention) {
    throw unusable('it mixes layers that keep a state with attention that is not fused');
  }
  const lanes = packStates(model, layout);
  const masks = attention ? packBranches(model, layout, attention) : [];
  if (attention) padRotaryTables(model, attention);
  const rows = gatherRows(model, layout);
  const end = attention ? endResults(model) : undefined;
  const precision = convertWeights(model, layout.tokens, requested);
  if (requested === 'int4') stackProducts(model.graph);
  gatherColumns(model.graph);
  prune(model.graph);
  const { logits, vocabSize, kv, media } = layout;
  const facts = {
    path: attention ? ('packed' as const) : ('plain' as const),
    vocabSize,
    logits,
    ...(end ? { end } : {}),
    kv,
    ...(media ? { media: { ...media, encoder: ENCODER_FILE } } : {}),
    ...(lanes ? { states: layout.states } : {}),
  };
  const inputsOf = ({ tokens, attentionMask, positions, positionRows }: GraphLayout): Manifest['inputs'] => ({
    tokens,
    masks,
    ...(lanes ? { lanes } : {}),
    ...(attentionMask ? { attentionMask } : {}),
    ...(positions ? { positions, ...(positionRows ? { positionRows } : {}) } : {}),
    ...(rows ? { rows } : {}),
  });
  const alone = { file: GRAPH_FILE, model };
  const aloneFacts = { graph: GRAPH_FILE, inputs: inputsOf(layout) };
  const batch = { file: BATCH_FILE, model: { ...model, graph: copyOf(model.graph) } };
  const batchLayout = { ...layout };
  // Models with recurrent layers run one sequence at a time, but compute its branches apart.
  const count = lanes ? 1 : slots;
  const added =
    attention && (lanes || count > 1)
      ? addAttentionSlots(batch.model, batchLayout, attention, masks, { count, threads })
      : null;
  if (!added || (lanes && !added.branchMasks)) {
    return { precision, graphs: [alone], facts: { ...facts, ...aloneFacts } };
  }
  // Slots read their lengths from inputs of their own, so the nodes that computed them from the attention mask are
  // unused.
  prune(batch.model.graph);
  const batchFacts = { graph: BATCH_FILE, inputs: inputsOf(batchLayout), slots: count, threads, ...added };
  return weightBytes(model.graph) <= SMALL_WEIGHTS
    ? { precision, graphs: [batch, alone], facts: { ...facts, ...batchFacts, alone: aloneFacts } }
    : { precision, graphs: [batch], facts: { ...facts, ...batchFacts } };
}

/**
 * Copies the lists of a graph, so that its nodes, inputs and outputs can be replaced without changing the original. The
 * nodes themselves are shared.
 */
function copyOf({ nodes, initializers, inputs, outputs, rest }: OnnxModel['graph']): OnnxModel['graph'] {
  return { nodes: [...nodes], initializers: new Map(initializers), inputs: [...inputs], outputs: [...outputs], rest };
}

function weightBytes({ initializers }: OnnxModel['graph']): number {
  return [...initializers.values()].reduce((sum, { data }) => sum + dataLength(data), 0);
}

/**
 * Number of inputs that share a scale in weights for NPUs: the block size that the compilers of both Intel and Qualcomm
 * accept (measured, docs/devices.md).
 */
const DEVICE_BLOCK = 32;

/**
 * Writes a model as static graphs of the given shapes, with packed branches. Throws `engine_failed` for a model that
 * has none.
 */
function rewriteStatic(
  { forDevices, foreign }: SourceGraph,
  layout: GraphLayout,
  requested: FixedPrecision,
  shapes: readonly StaticShape[],
): Rewritten {
  if (!forDevices) {
    throw unusable(`its published graph runs as it is, which has no static form: ${foreign}`, USE_SAFETENSORS);
  }
  if (layout.states.length > 0) throw unusable('static graphs do not support layers that keep a state');
  if (requested === 'published') throw unusable('the blocks of a GGUF file have no static form', NO_BLOCKS);
  const written = (kvType: KvType): DeviceModel => {
    const cuts = new DeviceCuts(kvType);
    const model = forDevices(cuts);
    if (requested !== 'float' && requested !== 'keep') {
      int8Embedding(model, layout.tokens);
      blockWeights(model, { bits: requested === 'int4' ? 4 : 8, size: DEVICE_BLOCK });
    }
    if (requested === 'float') floatProducts(model);
    return { model, cuts };
  };
  const floats = written('float32');
  const made = precisionOf(floats.model);
  // Blocks of a GGUF file are read as floats.
  const precision = requested === 'float' || made === 'published' ? 'float' : made;
  const { graphs, manifest } = staticGraphs(floats, written('float16'), layout, shapes);
  const { tokens, logits, vocabSize, kv } = layout;
  const inputs = { tokens, masks: floats.cuts.masks, positions: 'position_ids' };
  return {
    precision,
    graphs,
    facts: { path: 'static', graph: at(graphs, 0).file, vocabSize, logits, kv, inputs, static: manifest },
  };
}

/** Lists the fields of the manifest that depend on how the graphs were rewritten. */
type GraphFacts = Pick<
  Manifest,
  | 'slots'
  | 'branchMasks'
  | 'threads'
  | 'experts'
  | 'alone'
  | 'path'
  | 'graph'
  | 'vocabSize'
  | 'inputs'
  | 'logits'
  | 'end'
  | 'kv'
  | 'media'
  | 'states'
  | 'static'
>;

/** Holds the rewritten graphs of a model in one precision, in memory. */
interface Rewritten {
  facts: GraphFacts;
  precision: Precision;
  graphs: GraphFile[];
}
