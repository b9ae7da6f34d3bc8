import { at } from '../../lib/at.ts';
import {
  attribute,
  DataType,
  type Graph,
  makeTensor,
  type OnnxModel,
  type OnnxNode,
  type ValueInfo,
} from './format/model.ts';
import { MEDIA_FEATURES, MEDIA_ROWS, MEDIA_WIDTHS } from './rewrites/fuse-embeddings.ts';
import { isHalfType } from './to-float32.ts';
import { unusable } from './unusable.ts';

/** Names and shapes of the inputs and outputs of a causal language model's graph. */
export interface GraphLayout {
  tokens: string;
  attentionMask?: string;
  positions?: string;
  /** Number of rows in `positions`: 3 (time, height and width) for models that read images; absent for one row. */
  positionRows?: 3;
  logits: string;
  vocabSize: number;
  /** KV cache of each attention layer, in order. */
  kv: KvLayer[];
  /** States of the recurrent layers, in order. */
  states: StateTensor[];
  /**
   * Names of the inputs for features of images or audio, and the shape of a row of features: `parts` vectors, `width`
   * elements in all (`fuse-embeddings.ts`). Absent for a text-only model.
   */
  media?: { features: string; rows: string; width: number; parts: number };
}

/**
 * Names the input and output for the state of a recurrent layer after all tokens so far: the last inputs of a
 * convolution, or the memory of a recurrence.
 */
export interface StateTensor {
  past: string;
  present: string;
  /** Dimensions of the state of one sequence. */
  dims: number[];
}

export interface KvLayer {
  past: [key: string, value: string];
  present: [key: string, value: string];
  heads: number;
  headSize: number;
}

/** Name of the input for the numbers of the rows whose logits are computed. */
export const LOGIT_ROWS = 'logit_rows';

const PAST = /^past_key_values?\.(\d+)\.(?:(?:decoder|self)\.)?(key|value)$/;
const PRESENT = /^present(?:_key_values?)?\.(\d+)\.(?:(?:decoder|self)\.)?(key|value)$/;
/** Matches the names of states that the onnxruntime-genai builder and onnxruntime's newer exporter use. */
const PAST_STATE = /^past(?:_key_values)?\.(\d+)\.(conv|recurrent|conv_state|recurrent_state|ssm_state)$/;

/**
 * Finds the inputs and outputs of a model's graph by the names that both common exporters use: Optimum, whose layout
 * onnx-community publishes, and the onnxruntime-genai model builder. Since 0.18 the builder does not state the head
 * size in its KV inputs; it is then `publishedHeadSize`, from `genai_config.json`, or follows from the attention nodes.
 * Replaces the graph's input `num_logits_to_keep` by a constant. Throws `engine_failed` for a graph that is not a
 * causal language model with a KV cache.
 */
export function findLayout(model: OnnxModel, publishedHeadSize?: number): GraphLayout {
  const { graph } = model;
  const { inputs } = graph;
  const tokens = inputs.find((input) => input.name === 'input_ids');
  if (!tokens) throw unusable('it takes no input_ids; only text models are supported');
  if (tokens.dataType !== DataType.int64) throw unusable('its input_ids are not 64-bit integers');
  const logits = graph.outputs.find((output) => output.name === 'logits');
  if (!logits) throw unusable('it gives no logits');

  const past = byLayer(inputs, PAST);
  const present = byLayer(graph.outputs, PRESENT);
  if (past.length === 0) throw unusable('it has no KV cache inputs', 'Use a file that was exported "with past".');
  if (past.length !== present.length) throw unusable('its past and present KV do not match');
  const kv = past.map((layer, index): KvLayer => {
    const { key, value } = layer;
    if (key.dims[1] !== value.dims[1] || key.dims[3] !== value.dims[3])
      throw unusable(`keys and values of layer ${index} differ in shape`);
    if (key.dataType !== DataType.float && !isHalfType(key.dataType))
      throw unusable('its KV cache is quantised', 'Use a file with a float KV cache.');
    const heads = [key.dims[1], keyHeads(graph, key.name)].find(isSize);
    const headSize = [key.dims[3], publishedHeadSize, heads && keySize(graph, key.name, heads)].find(isSize);
    if (key.dims.length !== 4 || !heads || !headSize)
      throw unusable(`the KV cache of layer ${index} has no fixed number of heads and head size`);
    return {
      past: [layer.key.name, layer.value.name],
      present: [at(present, index).key.name, at(present, index).value.name],
      heads,
      headSize,
    };
  });

  const states = findStates(inputs, graph.outputs);
  const vocabSize = vocabularySize(graph, logits);
  const media = mediaInputs(graph);
  const layout: GraphLayout = {
    tokens: tokens.name,
    logits: logits.name,
    vocabSize,
    kv,
    states,
    ...(media ? { media } : {}),
  };
  const known = new Set([tokens.name, KEEP, LOGIT_ROWS, ...(media ? [MEDIA_FEATURES, MEDIA_ROWS] : [])]);
  for (const { name, dims } of inputs) {
    if (name === 'attention_mask') layout.attentionMask = name;
    else if (name === 'position_ids')
      Object.assign(layout, { positions: name, ...(dims.length === 3 ? { positionRows: 3 } : {}) });
    else if (!known.has(name) && !PAST.test(name) && !PAST_STATE.test(name)) {
      throw unusable(`it has the input "${name}", which is not supported`);
    }
  }
  keepAllLogits(graph);
  return layout;
}

/** Returns the inputs for media of a graph that `fuseEmbeddings` made; undefined for a text-only model. */
function mediaInputs({ inputs, initializers }: Graph): GraphLayout['media'] {
  const features = inputs.find(({ name }) => name === MEDIA_FEATURES);
  const width = features?.dims[1];
  const parts = initializers.get(MEDIA_WIDTHS)?.dims[0] ?? 1;
  return typeof width === 'number' ? { features: MEDIA_FEATURES, rows: MEDIA_ROWS, width, parts } : undefined;
}

/**
 * Returns the attention nodes if the engine can pack branches with them: one GroupQueryAttention for each layer, on
 * that layer's own KV cache, in the order of the layers; then those of layers that read the KV of another one
 * (Gemma 4). Returns undefined otherwise.
 */
export function attentionNodes(graph: Graph, layout: GraphLayout): OnnxNode[] | undefined {
  const nodes = graph.nodes.filter((node) => node.op === 'GroupQueryAttention' && node.domain === 'com.microsoft');
  const written = new Set(graph.outputs.map(({ name }) => name));
  const own = layout.kv.map(({ present }) => nodes.find((node) => node.outputs[1] === present[0]));
  const others = nodes.filter((node) => !own.includes(node));
  const reads = (node: OnnxNode | undefined, { past }: KvLayer) =>
    node !== undefined &&
    past.every((name, index) => node.inputs[3 + index] === name) &&
    !node.inputs[9] &&
    !node.inputs[10];
  const fits =
    own.every(
      (node, index) => reads(node, at(layout.kv, index)) && node?.outputs[2] === at(layout.kv, index).present[1],
    ) &&
    others.every(
      (node) =>
        layout.kv.some((layer) => reads(node, layer)) && !node.outputs.slice(1).some((name) => written.has(name)),
    );
  // A cast: `fits` is true only if there is a node for every layer.
  return fits ? ([...own, ...others] as OnnxNode[]) : undefined;
}

/** Returns the number of key-value heads of the GroupQueryAttention that reads a past; undefined if none reads it. */
function keyHeads(graph: Graph, past: string): number | undefined {
  const heads = attribute(attentionOver(graph, past), 'kv_num_heads');
  return typeof heads === 'number' ? heads : undefined;
}

/**
 * Returns the head size that follows from the width of the key projection, or of a joint projection of queries, keys
 * and values; undefined if the graph does not show it.
 */
function keySize(graph: Graph, past: string, heads: number): number | undefined {
  const attention = attentionOver(graph, past);
  if (attention?.inputs[1]) return sizeOf(graph, attention.inputs[1], heads);
  const queryHeads = attribute(attention, 'num_heads');
  return typeof queryHeads === 'number' ? sizeOf(graph, attention?.inputs[0] ?? '', queryHeads + 2 * heads) : undefined;
}

/** Returns the size of a head, given the number of heads that a projection computes together; undefined if unknown. */
function sizeOf(graph: Graph, projected: string, heads: number): number | undefined {
  const producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node])));
  let node = producers.get(projected);
  // Norms, biases and reshapes keep the total width of all heads.
  while (node && KEEPS_WIDTH.has(node.op)) node = producers.get(at(node.inputs, 0));
  const width = node?.op === 'MatMul' ? graph.initializers.get(at(node.inputs, 1))?.dims[1] : attribute(node, 'N');
  return typeof width === 'number' && width % heads === 0 ? width / heads : undefined;
}

const KEEPS_WIDTH = new Set([
  'Add',
  'Cast',
  'Reshape',
  'SimplifiedLayerNormalization',
  'RotaryEmbedding',
  'MRotaryEmbedding',
]);

function attentionOver(graph: Graph, past: string): OnnxNode | undefined {
  return graph.nodes.find((node) => node.op === 'GroupQueryAttention' && node.inputs[3] === past);
}

/**
 * Returns the size of a GroupQueryAttention's window: the number of keys that a token sees, including itself. Returns
 * null if it sees all.
 */
export function attentionWindow(node: OnnxNode): number | null {
  const window = attribute(node, 'local_window_size');
  return typeof window === 'number' && window > 0 ? window : null;
}

/**
 * Tells whether all rows of an activation share one scale; other tokens in a run then change the result for a token.
 */
export function couplesRows(graph: Graph): boolean {
  return graph.nodes.some((node) => node.op === 'DynamicQuantizeLinear' || node.op === 'DynamicQuantizeMatMul');
}

/**
 * Input of newer Optimum exports: how many positions, counted from the end, get logits; 0 for all. Replaced by the
 * constant 0, because `gatherRows` selects the positions instead.
 */
const KEEP = 'num_logits_to_keep';

function keepAllLogits(graph: Graph): void {
  const input = graph.inputs.find((info) => info.name === KEEP);
  if (!input) return;
  graph.inputs = graph.inputs.filter((info) => info !== input);
  const dims = input.dims.length === 0 ? [] : [1];
  graph.initializers.set(KEEP, makeTensor(KEEP, dims, BigInt64Array.of(0n)));
}

function byLayer(infos: ValueInfo[], pattern: RegExp): { key: ValueInfo; value: ValueInfo }[] {
  const layers: { key?: ValueInfo; value?: ValueInfo }[] = [];
  for (const info of infos) {
    const match = pattern.exec(info.name);
    if (!match) continue;
    const index = Number(match[1]);
    if (index >= 1024) throw unusable('it has more than 1024 layers');
    layers[index] ??= {};
    layers[index][match[2] as 'key' | 'value'] = info;
  }
  // Layers without attention have no KV, which leaves holes in the list.
  return layers.filter(Boolean).map((layer, index) => {
    if (!layer?.key || !layer.value) throw unusable(`the KV cache of layer ${index} is incomplete`);
    return { key: layer.key, value: layer.value };
  });
}

function findStates(inputs: ValueInfo[], outputs: ValueInfo[]): StateTensor[] {
  return inputs.flatMap(({ name, dims, dataType }) => {
    if (!PAST_STATE.test(name)) return [];
    const present = name.replace(/^past(?:_key_values)?/, 'present');
    const sizes = dims.slice(1).filter(isSize);
    if (!outputs.some((output) => output.name === present)) throw unusable(`it does not give the state ${present}`);
    if (sizes.length !== dims.length - 1) throw unusable(`the state ${name} has no fixed shape`);
    if (dataType !== DataType.float && !isHalfType(dataType)) throw unusable(`the state ${name} is not in floats`);
    return [{ past: name, present, dims: sizes }];
  });
}

function vocabularySize(graph: Graph, logits: ValueInfo): number {
  const last = logits.dims.at(-1);
  if (isSize(last)) return last;
  // Some exports leave the size of the vocabulary open; it is then the number of rows of the embedding table.
  const embedding = graph.nodes.find((node) => node.op === 'Gather' && node.inputs[1] === 'input_ids');
  const rows = graph.initializers.get(embedding?.inputs[0] ?? '')?.dims[0];
  if (isSize(rows)) return rows;
  throw unusable('it does not say how large its vocabulary is');
}

function isSize(dim: unknown): dim is number {
  return typeof dim === 'number' && dim > 0 && dim <= 1 << 24;
}
