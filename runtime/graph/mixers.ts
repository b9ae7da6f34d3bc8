import { floatTensor, type StoredTensor } from '../checkpoint/weight-source.ts';
import { DataType } from '../onnx/format/model.ts';
import { readFloats } from '../onnx/format/tensor-data.ts';
import type { Architecture, Convolution, DeltaNet } from './architecture.ts';
import type { GraphBuilder } from './graph-builder.ts';
import { exactLinear, linear } from './linear.ts';
import type { Weights } from './weights.ts';

/** Added to the squared length of a query or a key before its root, by Qwen 3.5. */
const LENGTH_EPSILON = 1e-6;

interface MixerParts<Mixer> {
  architecture: Architecture;
  /** Number of the layer. */
  layer: number;
  mixer: Mixer;
  weights: Weights;
  /** True for a graph that reads whole prompts, without the states of earlier tokens. */
  whole: boolean;
}

/** Adds the gated short convolution of LFM2. Returns what it adds to the stream. */
export function convolution(graph: GraphBuilder, x: string, parts: MixerParts<Convolution>): string {
  const { hidden } = parts.architecture;
  const { biased, width } = parts.mixer;
  const { weights, whole } = parts;
  const at = (name: string) => `layers.${parts.layer}.conv.${name}`;
  const both = (name: string, outputs: number) =>
    [
      weights.get(`${at(name)}.weight`, outputs, hidden),
      weights.optional(biased, `${at(name)}.bias`, outputs),
    ] as const;
  const [before = '', after = '', input = ''] = graph.split(linear(graph, x, ...both('in_proj', 3 * hidden)), [
    ...[hidden, hidden, hidden],
  ]);
  const kernel = weights.get(`${at('conv')}.weight`, hidden, 1, width);
  const bias = weights.optional(biased, `${at('conv')}.bias`, hidden);
  const mixed = causal(graph, graph.add('Mul', [before, input]), {
    layer: parts.layer,
    kernel,
    bias,
    activation: 'none',
    whole,
  });
  return linear(graph, graph.add('Mul', [after, mixed]), ...both('out_proj', hidden));
}

/** Adds the gated delta net of Qwen 3.5. Returns what it adds to the stream. */
export function deltaNet(graph: GraphBuilder, x: string, parts: MixerParts<DeltaNet>): string {
  const { hidden, epsilon } = parts.architecture;
  const { keyHeads, valueHeads, keySize, valueSize, width } = parts.mixer;
  const { weights, layer, whole } = parts;
  const [keys, values] = [keyHeads * keySize, valueHeads * valueSize];
  const at = (name: string) => `layers.${layer}.linear_attn.${name}`;
  const matrix = (name: string, outputs: number) => weights.get(`${at(name)}.weight`, outputs, hidden);
  const kernel = weights.get(`${at('conv1d')}.weight`, 2 * keys + values, 1, width);
  const mixed = causal(graph, linear(graph, x, matrix('in_proj_qkv', 2 * keys + values)), {
    ...{ layer, kernel, bias: undefined, activation: 'silu', whole },
  });
  const [query = '', key = '', value = ''] = graph.split(mixed, [keys, keys, values]);
  // The norm of a vector's length is the norm of its mean square, with another factor.
  const unit = (heads: string, factor: number) => {
    const gain = graph.computed(`unit/${keySize}/${factor}`, [keySize], () => [new Float32Array(keySize).fill(factor)]);
    const split = graph.add('Reshape', [heads, graph.integers(0, 0, keyHeads, keySize)]);
    const normed = graph.add('SimplifiedLayerNormalization', [split, gain], {
      ...{ axis: -1, epsilon: { float: LENGTH_EPSILON / keySize }, stash_type: 1 },
    });
    return graph.add('Reshape', [normed, graph.integers(0, 0, keys)]);
  };
  const logarithms = weights.get(at('A_log'), valueHeads);
  const decay = graph.computed(`${logarithms.name}/decay`, [valueHeads], () => [
    readFloats(floatTensor(logarithms)).map((logarithm) => -Math.exp(logarithm)),
  ]);
  const gates = [graph.name(), graph.name()];
  const [slow, write] = ['in_proj_a', 'in_proj_b'].map((name) => exactLinear(graph, x, matrix(name, valueHeads)));
  const step = graph.weight(weights.get(at('dt_bias'), valueHeads));
  graph.contrib('LinearAttentionGate', [slow ?? '', step, decay, write ?? ''], {}, gates);
  const [past, present] = states(graph, `${layer}.recurrent`, [valueHeads, keySize, valueSize], whole);
  const inputs = [unit(query, 1 / keySize), unit(key, keySize ** -0.5), value, past, ...gates];
  const recalled = graph.contrib(
    'LinearAttention',
    inputs,
    { q_num_heads: keyHeads, kv_num_heads: valueHeads, update_rule: 'gated_delta', scale: { float: 1 } },
    [graph.name(), present],
  );
  if (!whole) graph.output(present, ['batch_size', valueHeads, keySize, valueSize]);
  const norm = graph.weight(weights.get(`${at('norm')}.weight`, valueSize));
  const gated = graph.contrib('GatedRMSNorm', [recalled, norm, linear(graph, x, matrix('in_proj_z', values))], {
    epsilon: { float: epsilon },
  });
  return linear(graph, gated, weights.get(`${at('out_proj')}.weight`, hidden, values));
}

interface CausalConvolution {
  layer: number;
  /** `[channels, 1, width]` */
  kernel: StoredTensor;
  bias: StoredTensor | undefined;
  activation: 'none' | 'silu';
  whole: boolean;
}

/** Adds a convolution of each channel over the tokens so far. */
function causal(graph: GraphBuilder, x: string, parts: CausalConvolution): string {
  const { layer, kernel, bias, activation, whole } = parts;
  const [channels = 0, , width = 0] = kernel.dims;
  const [past, present] = states(graph, `${layer}.conv`, [channels, width - 1], whole);
  const line = graph.add('Transpose', [x], { perm: [0, 2, 1] });
  const inputs = [line, graph.weight(kernel), bias ? graph.weight(bias) : '', past];
  const mixed = graph.contrib('CausalConvWithState', inputs, { ndim: 1, activation }, [graph.name(), present]);
  if (!whole) graph.output(present, ['batch_size', channels, width - 1]);
  return graph.add('Transpose', [mixed], { perm: [0, 2, 1] });
}

/** Returns the names of a layer's state before and after the tokens of a run; before a whole prompt there is none. */
function states(
  graph: GraphBuilder,
  name: string,
  dims: readonly number[],
  whole: boolean,
): [past: string, present: string] {
  if (whole) return ['', graph.name()];
  return [graph.input(`past.${name}`, DataType.float, ['batch_size', ...dims]), `present.${name}`];
}
