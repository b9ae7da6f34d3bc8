import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { at } from '../../lib/at.ts';
import type { WeightForm } from '../../lib/schema/weight-form.ts';
import { addAttentionSlots } from '../onnx/attention-slots.ts';
import { chooseRotaryTables } from '../onnx/choose-rotary.ts';
import { endResults } from '../onnx/end-results.ts';
import { fuseEmbeddings } from '../onnx/fuse-embeddings.ts';
import { gatherRows } from '../onnx/gather-rows.ts';
import { attentionNodes, couplesRows, findLayout, type Layout } from '../onnx/layout.ts';
import { attribute, attributeFields, DataType, dataLength, type Model } from '../onnx/model.ts';
import { keepWholePast, packBranches, singlePositions } from '../onnx/pack-branches.ts';
import { packStates } from '../onnx/pack-states.ts';
import { padRotaryTables } from '../onnx/pad-rotary.ts';
import { prune } from '../onnx/prune.ts';
import { readModel } from '../onnx/read-model.ts';
import type { StaticShape } from '../onnx/static/plain-attention.ts';
import { widened } from '../onnx/tensor-data.ts';
import { isHalf, toFloat32 } from '../onnx/to-float32.ts';
import { unusable } from '../onnx/unusable.ts';
import { WeightsWriter, writeModel } from '../onnx/write-model.ts';
import type { Manifest } from './manifest.ts';
import type { Precision } from './precision.ts';
import { contextLength, publishedHeadSize, type SourceGraphs, sourceGraphs } from './source.ts';
import { staticGraphs } from './static-graphs.ts';
import { blockWeights, int4Weights } from './weights/blocks.ts';
import { int8Embedding, int8Weights } from './weights/int8.ts';

/**
 * Inputs that share a scale in weights for NPUs: the size that both compilers accept. Source: measured,
 * docs/devices.md.
 */
const DEVICE_BLOCK = 32;

const GRAPH_FILE = 'model.onnx';
const BATCH_FILE = 'batch.onnx';
/** Largest weights of a small model, in bytes; it is opened a second time for runs of a single sequence. */
const SMALL_WEIGHTS = 64 << 20;
const WEIGHTS_FILE = 'weights.bin';
const ENCODER_FILE = 'encoder.onnx';
const ENCODER_WEIGHTS_FILE = 'encoder.bin';

type FixedPrecision = Exclude<Precision, 'auto'>;
type GraphFacts = Pick<
  Manifest,
  | 'slots'
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

/** Describes what a form's graphs can run at once. */
export interface FormShape {
  /** Tokens of the longest prompt. */
  maxPromptLen: number;
  /** Fixed shapes of the graphs; absent: any length. */
  shapes?: readonly StaticShape[] | undefined;
  /** Sequences that one run of any length can take, if the model supports it. */
  slots: number;
}

interface Rewritten {
  facts: GraphFacts;
  form: WeightForm;
  graphs: { file: string; model: Model }[];
}

/** Graphs that are rewritten in memory and ready to be written. */
export interface PlannedGraphs {
  /** Bytes of weights that `write` will write. */
  bytes: number;
  /** Writes graphs and weights with one tensor in memory at a time, and reports the bytes of each piece. */
  write(folder: string, onBytes: (count: number) => void, signal: AbortSignal | undefined): Promise<void>;
}

/** Plans one form of a published model. */
export interface PlannedForm extends PlannedGraphs {
  facts: GraphFacts & Pick<Manifest, 'form' | 'contextLength'>;
  /** The form of the weights as published. */
  published: WeightForm;
}

/**
 * Rewrites the published graph into one form, over fixed shapes if `shapes` are given. Reads no weights yet. Throws
 * `engine_failed` for a model that cannot be used, or that has no form over fixed shapes.
 */
export async function planForm(
  source: string,
  precision: FixedPrecision,
  { maxPromptLen, shapes, slots }: FormShape,
): Promise<PlannedForm> {
  const model = readSource(sourceGraphs(source, precision));
  chooseRotaryTables(model, maxPromptLen);
  const context = await contextLength(source, model);
  const layout = findLayout(model, await publishedHeadSize(source));
  const published = formOf(model);
  const { facts, form, graphs } = shapes
    ? rewriteStatic(model, layout, precision, shapes)
    : rewrite(model, layout, precision, slots);
  return {
    facts: { ...facts, form, contextLength: Math.min(context, longestPast(shapes)) },
    published,
    ...plannedGraphs(graphs, WEIGHTS_FILE),
  };
}

/**
 * Plans the graph that makes features of pixels, in 32 bits, with its weights as published; null if the model has none.
 */
export function planEncoder(source: string): PlannedGraphs | null {
  const { encoder } = sourceGraphs(source, 'keep');
  if (!encoder) return null;
  const model = readModel(encoder);
  if (isHalf(model)) toFloat32(model);
  return plannedGraphs([{ file: ENCODER_FILE, model }], ENCODER_WEIGHTS_FILE);
}

/** Reads the graph of a language model that reads tokens. */
function readSource({ model, embeddings }: SourceGraphs): Model {
  return embeddings ? fuseEmbeddings(readModel(model), readModel(embeddings)) : readModel(model);
}

function plannedGraphs(graphs: Rewritten['graphs'], weightsFile: string): PlannedGraphs {
  // The parts of a model share their weights.
  const initializers = new Map(graphs.flatMap(({ model: { graph } }) => [...graph.initializers]));
  const tensors = Array.from(initializers.values(), widened);
  return {
    bytes: tensors.reduce((sum, tensor) => sum + dataLength(tensor.data), 0),
    async write(folder, onBytes, signal) {
      mkdirSync(folder, { recursive: true });
      const weights = new WeightsWriter(folder, weightsFile);
      const protos = new Map<string, Uint8Array>();
      try {
        for (const tensor of tensors) {
          signal?.throwIfAborted();
          protos.set(tensor.name, weights.write(tensor, onBytes));
          await setImmediate(); // lets an abort and the progress messages through
        }
      } finally {
        weights.close();
      }
      for (const { file, model: part } of graphs) {
        const own = Array.from(part.graph.initializers.keys(), (name) => protos.get(name)!);
        writeModel(join(folder, file), part, own);
      }
    },
  };
}

/** Returns the positions that the fixed shapes have cells for; unlimited without fixed shapes. */
function longestPast(shapes: readonly StaticShape[] = []): number {
  return shapes.length > 0 ? Math.max(...shapes.map(({ past }) => past)) : Number.POSITIVE_INFINITY;
}

/** Rewrites a graph so that branches are packed, in any length, for devices that run graphs unchanged. */
function rewrite(model: Model, layout: Layout, precision: FixedPrecision, slots: number): Rewritten {
  if (isHalf(model)) toFloat32(model);
  keepWholePast(model);
  singlePositions(model, layout);
  const attention = couplesRows(model.graph) ? undefined : attentionNodes(model.graph, layout);
  if (layout.states.length > 0 && !attention) {
    throw unusable(
      'it mixes layers that keep a state with attention that is not fused; choose another file of this model',
    );
  }
  const lanes = packStates(model, layout);
  const masks = attention ? packBranches(model, layout, attention) : [];
  if (attention) padRotaryTables(model, attention);
  const rows = gatherRows(model, layout, attention);
  const end = attention ? endResults(model) : undefined;
  const form = convertWeights(model, layout.tokens, precision);
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
  const inputsOf = ({ tokens, attentionMask, positions }: Layout): Manifest['inputs'] => ({
    tokens,
    masks,
    ...(lanes ? { lanes } : {}),
    ...(attentionMask ? { attentionMask } : {}),
    ...(positions ? { positions } : {}),
    ...(rows ? { rows } : {}),
  });
  const alone = { file: GRAPH_FILE, model };
  const aloneFacts = { graph: GRAPH_FILE, inputs: inputsOf(layout) };
  const batch = { file: BATCH_FILE, model: { ...model, graph: copyOf(model.graph) } };
  const batchLayout = { ...layout };
  // Layers that keep a state run one sequence at a time.
  const single = !attention || lanes || slots === 1;
  if (single || !addAttentionSlots(batch.model, batchLayout, attention, masks, slots)) {
    return { form, graphs: [alone], facts: { ...facts, ...aloneFacts } };
  }
  // Removes the nodes that computed the lengths of attention from its mask.
  prune(batch.model.graph);
  const batchFacts = { graph: BATCH_FILE, inputs: inputsOf(batchLayout), slots };
  return weightBytes(model.graph) <= SMALL_WEIGHTS
    ? { form, graphs: [batch, alone], facts: { ...facts, ...batchFacts, alone: aloneFacts } }
    : { form, graphs: [batch], facts: { ...facts, ...batchFacts } };
}

/**
 * Copies a graph so that its nodes, inputs and outputs can be replaced without changing the original; single nodes are
 * shared.
 */
function copyOf({ nodes, initializers, inputs, outputs, rest }: Model['graph']): Model['graph'] {
  return { nodes: [...nodes], initializers: new Map(initializers), inputs: [...inputs], outputs: [...outputs], rest };
}

function weightBytes({ initializers }: Model['graph']): number {
  return [...initializers.values()].reduce((sum, { data }) => sum + dataLength(data), 0);
}

/** Rewrites a graph so that branches are packed over fixed shapes. */
function rewriteStatic(
  model: Model,
  layout: Layout,
  precision: FixedPrecision,
  shapes: readonly StaticShape[],
): Rewritten {
  if (layout.media) throw unusable('static graphs have no place for media');
  if (layout.states.length > 0) throw unusable('static graphs have no place for layers that keep a state');
  if (isHalf(model)) toFloat32(model);
  const attention = attentionNodes(model.graph, layout);
  const rows = attention && gatherRows(model, layout, attention);
  if (!rows) throw unusable('its attention or its head is not in a form that static graphs are made from');
  if (precision === 'int8' || precision === 'int4') {
    int8Embedding(model, layout.tokens);
    blockWeights(model, { bits: precision === 'int8' ? 8 : 4, size: DEVICE_BLOCK });
  }
  if (precision === 'float') floatProducts(model);
  const form = precision === 'float' ? precision : formOf(model);
  const { graphs, masks, manifest } = staticGraphs(model, layout, rows, shapes);
  const { tokens, logits, vocabSize, kv } = layout;
  const inputs = { tokens, masks, positions: 'position_ids' };
  return {
    form,
    graphs,
    facts: { path: 'static', graph: at(graphs, 0).file, vocabSize, logits, kv, inputs, static: manifest },
  };
}

function convertWeights(model: Model, tokens: string, precision: FixedPrecision): WeightForm {
  if (precision === 'int8' || precision === 'int4') int8Embedding(model, tokens);
  if (precision === 'int8') int8Weights(model);
  if (precision === 'int4') int4Weights(model);
  if (precision === 'float') floatProducts(model);
  return precision === 'keep' ? formOf(model) : precision;
}

/** Makes products with published blocks of weights compute in floats, whatever their publisher allows. */
function floatProducts({ graph }: Model): void {
  for (const node of graph.nodes) {
    if (node.op === 'MatMulNBits') node.attributes.set('accuracy_level', attributeFields('accuracy_level', 1));
  }
}

function formOf({ graph }: Model): WeightForm {
  const blocks = graph.nodes.filter((node) => node.op === 'MatMulNBits');
  if (blocks.length > 0) return blocks.every((node) => attribute(node, 'bits') === 8) ? 'int8' : 'int4';
  return [...graph.initializers.values()].some((tensor) => tensor.dataType === DataType.int8) ? 'int8' : 'float';
}
