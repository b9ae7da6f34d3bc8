import { DataType } from '../onnx/format/model.ts';
import { roundToHalf } from '../onnx/to-float32.ts';
import { unusable } from '../onnx/unusable.ts';
import type { Architecture, Attention } from './architecture.ts';
import type { GraphBuilder } from './graph-builder.ts';
import { linear, rmsNorm } from './linear.ts';
import type { Rotary } from './rotary.ts';
import type { Weights } from './weights.ts';

/** Index of GroupQueryAttention's input for the score of seeing nothing. */
const SINKS = 11;
/** Rows of a rotary table that are computed at a time. */
const ROWS_AT_A_TIME = 4096;

/** Tells whether a token of a whole prompt sees only the tokens before it, or all. */
export type Sight = 'causal' | 'all';

/** Holds what the attention of all layers shares: their lengths, and tables of rotary positions. */
export class AttentionInputs {
  readonly #graph: GraphBuilder;
  readonly #context: number;
  readonly #tables = new Map<Rotary, string>();
  /**
   * Index of the last key of each sequence, and the number of keys, as GroupQueryAttention reads them; null for a graph
   * that reads whole prompts.
   */
  readonly lengths: readonly [last: string, total: string] | null;
  /** Tokens that a token of a whole prompt sees, and the mask of padding; null for a graph with earlier tokens. */
  readonly whole: { sight: Sight; mask: string } | null;
  /** New keys and values of each layer, for layers that share them. */
  readonly fresh = new Map<number, [key: string, value: string]>();

  /** @param sight what tokens see in a graph that reads whole prompts; null for a graph with earlier tokens */
  constructor(graph: GraphBuilder, context: number, sight: Sight | null) {
    this.#graph = graph;
    this.#context = context;
    const mask = graph.input('attention_mask', DataType.int64, ['batch_size', 'total_sequence_length']);
    this.whole = sight && { sight, mask: graph.add('Cast', [mask], { to: DataType.int32 }) };
    this.lengths = sight ? null : this.#lengthsOf(mask);
  }

  #lengthsOf(mask: string): [last: string, total: string] {
    const graph = this.#graph;
    const lengths = graph.add('ReduceSum', [mask, graph.integers(1)], { keepdims: 0 });
    const last = graph.add('Cast', [graph.add('Sub', [lengths, graph.integers(1)])], { to: DataType.int32 });
    const all = graph.add('Gather', [graph.add('Shape', [mask]), graph.integer(1)], { axis: 0 });
    return [last, graph.add('Cast', [all], { to: DataType.int32 })];
  }

  /** Returns the names of the tables of cosines and sines, with a row for each position. */
  rotary(rotary: Rotary): [cosines: string, sines: string] {
    const name = this.#tables.get(rotary) ?? `rotary${this.#tables.size}`;
    this.#tables.set(rotary, name);
    return [this.#table(`${name}/cosines`, rotary, Math.cos), this.#table(`${name}/sines`, rotary, Math.sin)];
  }

  /** Rotates queries or keys before the attention, where GroupQueryAttention cannot (`fusesRotary`). */
  rotated(x: string, rotary: Rotary, heads: number): string {
    return this.#graph.contrib('RotaryEmbedding', [x, this.#positions(), ...this.rotary(rotary)], {
      num_heads: heads,
      rotary_embedding_dim: 2 * rotary.inverse.length,
    });
  }

  /** Returns the factor of each query, `[batch, rows, 1]`, for queries that grow with their positions. */
  growth({ beta, first }: NonNullable<Attention['growth']>): string {
    const graph = this.#graph;
    const rows = this.#context;
    const table = graph.computed(`query_growth/${beta}/${first}`, [rows, 1], () => [
      Float32Array.from({ length: rows }, (_, position) => 1 + beta * Math.log(1 + Math.floor(position / first))),
    ]);
    return graph.add('Gather', [table, this.#positions()]);
  }

  #positions(): string {
    // A whole prompt begins at the first position.
    if (this.whole) return this.#graph.integers(0);
    return this.#graph.input('position_ids', DataType.int64, ['batch_size', 'sequence_length']);
  }

  #table(name: string, { inverse, scale, half }: Rotary, wave: (angle: number) => number): string {
    const rows = this.#context;
    const width = inverse.length;
    return this.#graph.computed(name, [rows, width], function* () {
      for (let first = 0; first < rows; first += ROWS_AT_A_TIME) {
        const count = Math.min(ROWS_AT_A_TIME, rows - first);
        // Each step in 32-bit floats, as PyTorch computes them.
        yield Float32Array.from({ length: count * width }, (_, at) => {
          const angle = Math.fround((first + Math.floor(at / width)) * (inverse[at % width] ?? 0));
          const value = Math.fround(wave(angle)) * scale;
          return half ? roundToHalf(value) : value;
        });
      }
    });
  }
}

/** Adds the attention of a layer to the normalized stream `x`. Returns what it adds to the stream. */
export function attention(
  graph: GraphBuilder,
  x: string,
  { architecture, layer, mixer, weights, shared }: AttentionParts,
): string {
  const { hidden, names } = architecture;
  const { heads, kvHeads, headSize, biases } = mixer;
  const at = (name: string) => `layers.${layer}.${name}`;
  const project = (name: string, width: number, bias = biases.inputs) =>
    linear(
      graph,
      x,
      weights.get(`${at(name)}.weight`, width, hidden),
      weights.optional(bias, `${at(name)}.bias`, width),
    );
  const [queries, keys] = [heads * headSize, kvHeads * headSize];
  const rotates = shared.whole === null && mixer.rotary !== null && fusesRotary(mixer.rotary, headSize);
  let [query, key, value, gate] = ['', '', '', ''];
  if (names.joint === null) {
    query = project(names.query, mixer.gated ? 2 * queries : queries);
    if (mixer.gated) [query, gate] = gateOf(graph, query, heads, headSize);
    if (mixer.sharedFrom === null) {
      key = project(names.key, keys);
      value = mixer.keysAsValues ? key : project(names.value, keys);
    } else weights.skip(...[names.key, names.value, names.keyNorm, 'self_attn.v_norm'].map(at));
  } else {
    if (mixer.gated || mixer.keysAsValues || mixer.sharedFrom !== null) {
      throw unusable(`its checkpoint has "${at(names.joint)}", which this family has in parts`);
    }
    query = project(names.joint, queries + 2 * keys);
    if (shared.whole || mixer.growth || mixer.norm || (mixer.rotary && !rotates)) {
      [query = '', key = '', value = ''] = graph.split(query, [queries, keys, keys]);
    }
  }
  query = headNorm(graph, query, at(names.queryNorm), heads, { architecture, mixer, weights });
  if (key) key = headNorm(graph, key, at(names.keyNorm), kvHeads, { architecture, mixer, weights });
  if (value && mixer.valueNorm) value = plainNorm(graph, value, kvHeads, { architecture, headSize });
  if (mixer.rotary && !rotates) {
    query = shared.rotated(query, mixer.rotary, heads);
    if (key) key = shared.rotated(key, mixer.rotary, kvHeads);
  }
  if (mixer.sharedFrom === null) shared.fresh.set(layer, [key, value]);
  else [key, value] = shared.fresh.get(mixer.sharedFrom) ?? ['', ''];
  if (mixer.growth) query = graph.add('Mul', [query, shared.growth(mixer.growth)]);
  const seen = shared.whole
    ? wholeAttention(graph, [query, key, value], { mixer, ...shared.whole })
    : cachedAttention(graph, [query, key, value], { layer, mixer, weights, shared, rotates });
  const result = gate ? graph.add('Mul', [seen, graph.add('Sigmoid', [gate])]) : seen;
  const bias = weights.optional(biases.output, `${at(names.output)}.bias`, hidden);
  return linear(graph, result, weights.get(`${at(names.output)}.weight`, hidden, queries), bias);
}

/** Adds the attention of new tokens to themselves and to earlier ones, whose keys and values are inputs. */
function cachedAttention(
  graph: GraphBuilder,
  [query, key, value]: readonly [string, string, string],
  {
    layer,
    mixer,
    weights,
    shared,
    rotates,
  }: Pick<AttentionParts, 'layer' | 'mixer' | 'weights' | 'shared'> & { rotates: boolean },
): string {
  const { heads, kvHeads, headSize } = mixer;
  const pasts = ['key', 'value'].map((kind) =>
    graph.input(`past_key_values.${mixer.sharedFrom ?? layer}.${kind}`, DataType.float, [
      'batch_size',
      kvHeads,
      'past_sequence_length',
      headSize,
    ]),
  );
  // A layer that shares writes what the other layer has written already, to nowhere.
  const presents = ['key', 'value'].map((kind) =>
    mixer.sharedFrom === null ? `present.${layer}.${kind}` : graph.name(),
  );
  const inputs = [
    query,
    key,
    value,
    ...pasts,
    ...(shared.lengths ?? []),
    ...(mixer.rotary && rotates ? shared.rotary(mixer.rotary) : []),
  ];
  if (mixer.sinks) {
    while (inputs.length < SINKS) inputs.push('');
    inputs.push(graph.weight(weights.get(`layers.${layer}.self_attn.sinks`, heads)));
  }
  const seen = graph.contrib(
    'GroupQueryAttention',
    inputs,
    {
      ...{ num_heads: heads, kv_num_heads: kvHeads, scale: { float: mixer.scale } },
      ...{ do_rotary: rotates ? 1 : 0, rotary_interleaved: 0, local_window_size: mixer.window ?? -1 },
      ...(mixer.cap === null ? {} : { softcap: { float: mixer.cap } }),
    },
    [graph.name(), ...presents],
  );
  for (const name of mixer.sharedFrom === null ? presents : [])
    graph.output(name, ['batch_size', kvHeads, 'total_sequence_length', headSize]);
  return seen;
}

/** Adds the attention among the tokens of whole prompts. Throws `engine_failed` for a kind that it lacks. */
function wholeAttention(
  graph: GraphBuilder,
  [query, key, value]: readonly [string, string, string],
  { mixer, sight, mask }: { mixer: Attention; sight: Sight; mask: string },
): string {
  const { heads, kvHeads, headSize, scale, cap, window, sinks, growth, sharedFrom } = mixer;
  if (cap !== null || window !== null || sinks || growth || sharedFrom !== null) {
    throw unusable('its attention is not written for models that read their whole prompt at once');
  }
  // MultiHeadAttention has as many keys as queries: each is repeated for the queries that share it.
  const repeated = (x: string): string => {
    if (kvHeads === heads) return x;
    const split = graph.add('Reshape', [x, graph.integers(0, 0, kvHeads, 1, headSize)]);
    const all = graph.add('Expand', [split, graph.integers(1, 1, 1, heads / kvHeads, 1)]);
    return graph.add('Reshape', [all, graph.integers(0, 0, heads * headSize)]);
  };
  return graph.contrib('MultiHeadAttention', [query, repeated(key), repeated(value), '', mask], {
    ...{ num_heads: heads, scale: { float: scale }, unidirectional: sight === 'causal' ? 1 : 0 },
  });
}

/** Splits each head of a projection into a query and the gate of its result. */
function gateOf(graph: GraphBuilder, x: string, heads: number, headSize: number): [query: string, gate: string] {
  const both = graph.add('Reshape', [x, graph.integers(0, 0, heads, 2 * headSize)]);
  const [query = '', gate = ''] = graph
    .split(both, [headSize, headSize])
    .map((part) => graph.add('Reshape', [part, graph.integers(0, 0, heads * headSize)]));
  return [query, gate];
}

/**
 * Tells whether GroupQueryAttention can rotate: its heads must have a multiple of 16 elements, and its tables a
 * multiple of 8 (onnxruntime, `group_query_attention_helper.h`).
 */
function fusesRotary({ inverse }: Rotary, headSize: number): boolean {
  return headSize % 16 === 0 && inverse.length % 8 === 0;
}

interface AttentionParts {
  architecture: Architecture;
  /** Number of the layer. */
  layer: number;
  mixer: Attention;
  weights: Weights;
  shared: AttentionInputs;
}

/** Adds the norm of queries or keys that the model has: of each head, of all together, or none. */
function headNorm(
  graph: GraphBuilder,
  x: string,
  name: string,
  count: number,
  { architecture, mixer, weights }: Pick<AttentionParts, 'architecture' | 'mixer' | 'weights'>,
): string {
  const { norm, headSize } = mixer;
  if (norm === null) return x;
  if (norm === 'row') return rmsNorm(graph, x, weights.get(`${name}.weight`, count * headSize), architecture);
  const heads = graph.add('Reshape', [x, graph.integers(0, 0, count, headSize)]);
  const normed = rmsNorm(graph, heads, weights.get(`${name}.weight`, headSize), architecture);
  return graph.add('Reshape', [normed, graph.integers(0, 0, count * headSize)]);
}

/** Adds the norm of each head without weights. */
function plainNorm(
  graph: GraphBuilder,
  x: string,
  count: number,
  { architecture, headSize }: { architecture: Architecture; headSize: number },
): string {
  const ones = graph.computed(`ones/${headSize}`, [headSize], () => [new Float32Array(headSize).fill(1)]);
  const heads = graph.add('Reshape', [x, graph.integers(0, 0, count, headSize)]);
  const epsilon = { float: architecture.epsilon };
  const normed = graph.add('SimplifiedLayerNormalization', [heads, ones], { axis: -1, epsilon, stash_type: 1 });
  return graph.add('Reshape', [normed, graph.integers(0, 0, count * headSize)]);
}
