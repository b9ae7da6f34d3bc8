import { EXACT } from '../onnx/format/constants.ts';
import { DataType, makeTensor } from '../onnx/format/model.ts';
import { roundToHalf } from '../onnx/to-float32.ts';
import { unusable } from '../onnx/unusable.ts';
import type { Architecture, Attention } from './architecture.ts';
import type { DeviceCuts, GraphBuilder } from './graph-builder.ts';
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
   * that reads whole prompts, and for one for devices.
   */
  readonly lengths: readonly [last: string, total: string] | null;
  /** Tokens that a token of a whole prompt sees, and the mask of padding; null for a graph with earlier tokens. */
  readonly whole: { sight: Sight; mask: string } | null;
  /** New keys and values of each layer, for layers that share them; past ones, too, in a graph for devices. */
  readonly fresh = new Map<number, [key: string, value: string]>();

  /** @param sight what tokens see in a graph that reads whole prompts; null for a graph with earlier tokens */
  constructor(graph: GraphBuilder, context: number, sight: Sight | null) {
    this.#graph = graph;
    this.#context = context;
    const dims = ['batch_size', 'total_sequence_length'];
    const mask = graph.cuts ? '' : graph.input('attention_mask', DataType.int64, dims);
    this.whole = sight && { sight, mask: graph.add('Cast', [mask], { to: DataType.int32 }) };
    this.lengths = sight || graph.cuts ? null : this.#lengthsOf(mask);
  }

  #lengthsOf(mask: string): [last: string, total: string] {
    const graph = this.#graph;
    const lengths = graph.add('ReduceSum', [mask, graph.integers(1)], { keepdims: 0 });
    const last = graph.add('Cast', [graph.add('Sub', [lengths, graph.integers(1)])], { to: DataType.int32 });
    const all = graph.add('Gather', [graph.add('Shape', [mask]), graph.integer(1)], { axis: 0 });
    return [last, graph.add('Cast', [all], { to: DataType.int32 })];
  }

  /**
   * Returns the names of the tables of cosines and sines, with a row for each position.
   *
   * @param width number of columns: one for each pair of elements that are rotated together, or one for each element of
   *   a head, of which those that are not rotated have the angle 0
   */
  rotary(rotary: Rotary, width = rotary.inverse.length): [cosines: string, sines: string] {
    const name = this.#tables.get(rotary) ?? `rotary${this.#tables.size}`;
    this.#tables.set(rotary, name);
    return [
      this.#table(`${name}/cosines`, rotary, { wave: Math.cos, width }),
      this.#table(`${name}/sines`, rotary, { wave: Math.sin, width }),
    ];
  }

  /** Rotates queries or keys before the attention, where GroupQueryAttention cannot (`fusesRotary`). */
  rotated(x: string, rotary: Rotary, heads: number): string {
    return this.#graph.contrib('RotaryEmbedding', [x, this.#positions(), ...this.rotary(rotary)], {
      num_heads: heads,
      rotary_embedding_dim: 2 * rotary.inverse.length,
    });
  }

  /**
   * Rotates queries or keys by head, `[1, heads, rows, head size]`, in a graph for devices: x · cos + (x · R) · sin,
   * where (x · R)[first] = -x[second] and (x · R)[second] = x[first] for each pair. The product with R is exact. A
   * rotation by Concat instead is computed wrongly by OpenVINO 2026.4 when it reads its own binary (measured,
   * docs/devices.md).
   */
  rotatedByHead(x: string, rotary: Rotary, size: number): string {
    const graph = this.#graph;
    const pairs = rotary.inverse.length;
    const swap = new Float32Array(size * size);
    for (let pair = 0; pair < pairs; pair++) {
      swap[(pairs + pair) * size + pair] = -1;
      swap[pair * size + pairs + pair] = 1;
    }
    const swapped = graph.add('MatMul', [
      x,
      graph.tensor(makeTensor(`${EXACT}swap/${size}_${pairs}`, [size, size], swap)),
    ]);
    const [cosines, sines] = this.rotary(rotary, size).map((table) => this.#atPositions(table, size));
    return graph.add('Add', [graph.add('Mul', [x, cosines ?? '']), graph.add('Mul', [swapped, sines ?? ''])]);
  }

  /** Returns the factor of each query, `[batch, rows, 1]`, for queries that grow with their positions. */
  growth({ beta, first }: NonNullable<Attention['growth']>): string {
    const graph = this.#graph;
    const rows = this.#context;
    const table = graph.computed(`query_growth/${beta}/${first}`, [rows, 1], () => [
      Float32Array.from({ length: rows }, (_, position) => 1 + beta * Math.log(1 + Math.floor(position / first))),
    ]);
    return this.#atPositions(table, 1);
  }

  /** Returns the rows of a table at the tokens' positions. Those of a graph for devices are looked up before it. */
  #atPositions(table: string, width: number): string {
    const graph = this.#graph;
    if (!graph.cuts) return graph.add('Gather', [table, this.#positions()]);
    const name = `${table}/rows`;
    if (!graph.cuts.positional.some((one) => one.name === name)) {
      graph.nodes('Gather', [table, this.#positions()], [name]);
      graph.cuts.positional.push({ name, width });
    }
    return name;
  }

  #positions(): string {
    // A whole prompt begins at the first position.
    if (this.whole) return this.#graph.integers(0);
    return this.#graph.input('position_ids', DataType.int64, ['batch_size', 'sequence_length']);
  }

  #table(
    name: string,
    { inverse, scale, half }: Rotary,
    { wave, width }: { wave: (angle: number) => number; width: number },
  ): string {
    const rows = this.#context;
    const pairs = inverse.length;
    return this.#graph.computed(name, [rows, width], function* () {
      for (let first = 0; first < rows; first += ROWS_AT_A_TIME) {
        const count = Math.min(ROWS_AT_A_TIME, rows - first);
        // Each step in 32-bit floats, as PyTorch computes them.
        yield Float32Array.from({ length: count * width }, (_, at) => {
          const column = at % width;
          if (column >= 2 * pairs) return wave(0);
          const angle = Math.fround((first + Math.floor(at / width)) * (inverse[column % pairs] ?? 0));
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
  { architecture, layer, mixer, weights, shared, cut }: AttentionParts,
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
    if (graph.cuts || shared.whole || mixer.growth || mixer.norm || (mixer.rotary && !rotates)) {
      [query = '', key = '', value = ''] = graph.split(query, [queries, keys, keys]);
    }
  }
  query = headNorm(graph, query, at(names.queryNorm), heads, { architecture, mixer, weights });
  if (key) key = headNorm(graph, key, at(names.keyNorm), kvHeads, { architecture, mixer, weights });
  if (value && mixer.valueNorm) value = plainNorm(graph, value, kvHeads, { architecture, headSize });
  if (graph.cuts) {
    [query, key, value] = byHead(graph, [query, key, value], { layer, mixer, shared, cuts: graph.cuts });
  } else if (mixer.rotary && !rotates) {
    query = shared.rotated(query, mixer.rotary, heads);
    if (key) key = shared.rotated(key, mixer.rotary, kvHeads);
  }
  if (mixer.sharedFrom === null) shared.fresh.set(layer, [key, value]);
  else [key, value] = shared.fresh.get(mixer.sharedFrom) ?? ['', ''];
  if (mixer.growth) query = graph.add('Mul', [query, shared.growth(mixer.growth)]);
  const seen = graph.cuts
    ? plainAttention(graph, [query, key, value], mixer, graph.cuts)
    : shared.whole
      ? wholeAttention(graph, [query, key, value], { mixer, ...shared.whole })
      : cachedAttention(graph, [query, key, value], { layer, mixer, weights, shared, rotates });
  const left = (x: string) => (cut ? graph.atLogitRows(x, queries) : x);
  const result = gate ? graph.add('Mul', [left(seen), graph.add('Sigmoid', [left(gate)])]) : left(seen);
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

/**
 * Arranges queries, keys and values by head for `plainAttention`, rotates them, and joins keys and values with the past
 * ones, which are inputs of the layers; the new ones are outputs. If past cells have 16 bits, new ones are rounded too,
 * so that the run that computes a cell uses the same values as later runs.
 */
function byHead(
  graph: GraphBuilder,
  [query, key, value]: readonly [string, string, string],
  { layer, mixer, shared, cuts }: Pick<AttentionParts, 'layer' | 'mixer' | 'shared'> & { cuts: DeviceCuts },
): [query: string, keys: string, values: string] {
  const { heads, kvHeads, headSize, rotary } = mixer;
  const split = (x: string, count: number) => {
    const rows = graph.add('Reshape', [x, graph.integers(1, 0, count, headSize)]);
    return graph.add('Transpose', [rows], { perm: [0, 2, 1, 3] });
  };
  const turned = (x: string) => (rotary ? shared.rotatedByHead(x, rotary, headSize) : x);
  const half = cuts.kvType === 'float16';
  const joined = (fresh: string, kind: string): string => {
    const [past, present] = [`past_key_values.${layer}.${kind}`, `present.${layer}.${kind}`];
    graph.nodes(half ? 'Cast' : 'Identity', [fresh], [present], half ? { to: DataType.float16 } : {});
    if (!half) return graph.add('Concat', [past, fresh], { axis: 2 });
    graph.nodes('Concat', [past, present], [`${present}/all`], { axis: 2 });
    return graph.add('Cast', [`${present}/all`], { to: DataType.float });
  };
  const own = key !== '';
  return [
    turned(split(query, heads)),
    own ? joined(turned(split(key, kvHeads)), 'key') : '',
    own ? joined(split(value, kvHeads), 'value') : '',
  ];
}

/**
 * Adds the attention of new tokens to past and new ones with operators that compilers for NPUs accept. The queries that
 * share a key head are stacked, so that each key head needs one product.
 */
function plainAttention(
  graph: GraphBuilder,
  [query, keys, values]: readonly [string, string, string],
  { heads, kvHeads, headSize, scale, cap, window, sinks }: Attention,
  { masks }: DeviceCuts,
): string {
  if (sinks) throw unusable('it has attention sinks, which have no static form');
  const mask = window === null ? 'tree_mask' : `tree_mask_${window}`;
  if (!masks.some(({ name }) => name === mask)) masks.push({ name: mask, window });
  const shaped = (x: string, ...dims: number[]) => graph.add('Reshape', [x, graph.integers(...dims)]);
  const grouped = shaped(graph.scaled(query, scale), 1, kvHeads, -1, headSize);
  const products = graph.add('MatMul', [grouped, graph.add('Transpose', [keys], { perm: [0, 1, 3, 2] })]);
  const scores = shaped(cap === null ? products : graph.capped(products, cap), kvHeads, heads / kvHeads, -1, 0);
  const weights = graph.add('Softmax', [graph.add('Add', [scores, mask])], { axis: -1 });
  const mixed = graph.add('MatMul', [shaped(weights, 1, kvHeads, -1, 0), values]);
  const rows = graph.add('Transpose', [shaped(mixed, 1, heads, -1, headSize)], { perm: [0, 2, 1, 3] });
  return shaped(rows, 1, 0, heads * headSize);
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
  /** True to compute only the rows whose logits are computed. */
  cut: boolean;
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
