import { type GraphWriter, MS } from './graph-writer.ts';
import type { Hybrid, Shape } from './shapes.ts';

/**
 * Names of the graph's inputs and constants that all layers share: the lengths of the sequences, and the cosines and
 * sines of rotary positions.
 */
export const SHARED = { lengths: 'seqlens_k', total: 'total', cos: 'cos_cache', sin: 'sin_cache' } as const;

const EPSILON = { epsilon: { float: 1e-6 } };
const NORM = { axis: -1, stash_type: 1, ...EPSILON };

/**
 * Adds a layer's attention or recurrent part, as the onnxruntime-genai builder writes it. Returns the name of its
 * output, which the caller adds to the residual.
 */
export function mixer(graph: GraphWriter, shape: Shape, layer: number, x: string): string {
  const { hybrid } = shape;
  if (!hybrid || hybrid.attention.includes(layer)) return attention(graph, shape, layer, x);
  return hybrid.kind === 'conv'
    ? convolution(graph, shape, hybrid, layer, x)
    : deltaRule(graph, shape, hybrid, layer, x);
}

/**
 * Adds attention as in Qwen2 (with a bias), as in LFM2 (with norms of queries and keys), or as in Qwen3.5 (with norms
 * and a gate).
 */
function attention(graph: GraphWriter, shape: Shape, layer: number, x: string): string {
  const { hidden, heads, kvHeads, headSize, hybrid } = shape;
  const name = (part: string) => `layer.${layer}.${part}`;
  const gated = hybrid?.kind === 'linear';
  const width = (heads + 2 * kvHeads) * headSize;
  const product = graph.linear(name('qkv'), x, hidden, width);
  let inputs: string[];
  if (hybrid) {
    const parts = ['query', 'key', 'value'].map(name);
    graph.add('Split', [product, graph.integers(heads * headSize, kvHeads * headSize, kvHeads * headSize)], parts, {
      axis: -1,
    });
    const [query, key, value] = parts as [string, string, string];
    const normed = (from: string, count: number): string => {
      const apart = graph.add('Reshape', [from, graph.integers(0, -1, headSize)], [`${from}.heads`]);
      const norm = graph.ones(`${from}.norm.weight`, headSize);
      const even = graph.add('SimplifiedLayerNormalization', [apart, norm], [`${from}.norm`], NORM);
      return graph.add('Reshape', [even, graph.integers(0, -1, count * headSize)], [`${from}.normed`]);
    };
    inputs = [normed(query, heads), normed(key, kvHeads), value];
  } else {
    inputs = [graph.add('Add', [product, graph.weight(name('qkv.bias'), [width], 0.5)], [name('qkv.biased')]), '', ''];
  }
  const dims = ['batch_size', kvHeads, 'length', headSize];
  const key = graph.carried(`past_key_values.${layer}.key`, `present.${layer}.key`, dims);
  const value = graph.carried(`past_key_values.${layer}.value`, `present.${layer}.value`, dims);
  let out = graph.add(
    'GroupQueryAttention',
    [...inputs, key[0], value[0], SHARED.lengths, SHARED.total, SHARED.cos, SHARED.sin],
    [name('attention'), key[1], value[1]],
    { num_heads: heads, kv_num_heads: kvHeads, scale: { float: headSize ** -0.5 }, do_rotary: 1 },
    MS,
  );
  if (gated) {
    const gate = graph.linear(name('attention.gate'), x, hidden, heads * headSize);
    const open = graph.add('Sigmoid', [gate], [name('attention.open')]);
    out = graph.add('Mul', [out, open], [name('attention.gated')]);
  }
  return graph.linear(name('o'), out, heads * headSize, hidden);
}

/** Adds LFM2's short convolution, between two gates. */
function convolution(graph: GraphWriter, { hidden }: Shape, { kernel }: Hybrid, layer: number, x: string): string {
  const name = (part: string) => `layer.${layer}.conv.${part}`;
  const product = graph.linear(name('in'), x, hidden, 3 * hidden);
  const channels = graph.add('Transpose', [product], [name('channels')], { perm: [0, 2, 1] });
  const [before, after, value] = ['before', 'after', 'value'].map(name) as [string, string, string];
  graph.add('Split', [channels, graph.integers(hidden, hidden, hidden)], [before, after, value], { axis: 1 });
  const gated = graph.add('Mul', [before, value], [name('gated')]);
  const out = causalConvolution(graph, { layer, x: gated, width: hidden, kernel, activation: 'none' });
  const opened = graph.add('Mul', [after, out], [name('opened')]);
  const rows = graph.add('Transpose', [opened], [name('rows')], { perm: [0, 2, 1] });
  return graph.linear(name('out'), rows, hidden, hidden);
}

/** Adds Qwen3.5's linear attention: a convolution, the gated delta rule, and a norm with a gate. */
function deltaRule(graph: GraphWriter, { hidden }: Shape, hybrid: Hybrid, layer: number, x: string): string {
  const { stateHeads: heads, stateSize: size, kernel } = hybrid;
  const name = (part: string) => `layer.${layer}.linear.${part}`;
  const width = heads * size;
  const qkv = graph.linear(name('qkv'), x, hidden, 3 * width);
  const gate = graph.linear(name('z'), x, hidden, width);
  const [a, b] = ['a', 'b'].map((part) => graph.linear(name(part), x, hidden, heads)) as [string, string];
  const channels = graph.add('Transpose', [qkv], [name('channels')], { perm: [0, 2, 1] });
  const mixed = causalConvolution(graph, { layer, x: channels, width: 3 * width, kernel, activation: 'silu' });
  const rows = graph.add('Transpose', [mixed], [name('rows')], { perm: [0, 2, 1] });
  const [query, key, value] = ['query', 'key', 'value'].map(name) as [string, string, string];
  graph.add('Split', [rows, graph.integers(width, width, width)], [query, key, value], { axis: -1 });
  const unit = (from: string): string => {
    const apart = graph.add('Reshape', [from, graph.integers(0, 0, heads, size)], [`${from}.heads`]);
    const even = graph.add('LpNormalization', [apart], [`${from}.unit`], { axis: -1, p: 2 });
    return graph.add('Reshape', [even, graph.integers(0, 0, width)], [`${from}.units`]);
  };
  const scale = graph.constant(name('scale'), Float32Array.of(size ** -0.5), []);
  const scaled = graph.add('Mul', [unit(query), scale], [name('scaled')]);
  const [decay, beta] = [name('decay'), name('beta')] as const;
  const bias = graph.ones(name('dt_bias'), heads);
  const rate = graph.constant(name('neg_exp_A'), new Float32Array(heads).fill(-0.5));
  graph.add('LinearAttentionGate', [a, bias, rate, b], [decay, beta], {}, MS);
  const dims = ['batch_size', heads, size, size];
  const [past, present] = graph.carried(`past.${layer}.recurrent`, `present.${layer}.recurrent`, dims);
  const out = graph.add(
    'LinearAttention',
    [scaled, unit(key), value, past, decay, beta],
    [name('attention'), present],
    { q_num_heads: heads, kv_num_heads: heads, update_rule: 'gated_delta', scale: { float: 1 }, state_window: 0 },
    MS,
  );
  const normed = graph.add('GatedRMSNorm', [out, graph.ones(name('norm'), size), gate], [name('normed')], EPSILON, MS);
  return graph.linear(name('out'), normed, width, hidden);
}

interface Convolution {
  layer: number;
  x: string;
  width: number;
  kernel: number;
  activation: 'none' | 'silu';
}

function causalConvolution(graph: GraphWriter, { layer, x, width, kernel, activation }: Convolution): string {
  const name = (part: string) => `layer.${layer}.causal.${part}`;
  const weight = graph.weight(name('weight'), [width, 1, kernel], Math.sqrt(3 / kernel));
  const [past, present] = graph.carried(`past.${layer}.conv`, `present.${layer}.conv`, [
    'batch_size',
    width,
    kernel - 1,
  ]);
  const attributes = { ndim: 1, activation, state_window: 0 };
  return graph.add('CausalConvWithState', [x, weight, '', past], [name('out'), present], attributes, MS);
}
