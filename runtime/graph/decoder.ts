import { rowsOf, type StoredTensor, type WeightSource } from '../checkpoint/weight-source.ts';
import { DataType, type OnnxModel } from '../onnx/format/model.ts';
import { unusable } from '../onnx/unusable.ts';
import type { Activation, Architecture, Layer } from './architecture.ts';
import { AttentionInputs, attention, type Sight } from './attention.ts';
import { mixture } from './experts.ts';
import { DeviceCuts, GraphBuilder } from './graph-builder.ts';
import { exactLinear, linear, lookup, rmsNorm, skipNorm } from './linear.ts';
import { convolution, deltaNet } from './mixers.ts';
import { Weights } from './weights.ts';

/** Tells what a graph computes instead of the logits of all tokens. Its last layer stays in floats. */
export type Readout = TokenReadout | LinearReadout | StatesReadout;

/** Asks for the logits of these tokens only, in this order. */
export interface TokenReadout {
  tokens: readonly number[];
}

/** Describes a linear readout of the last hidden states, instead of the output head. */
export interface LinearReadout {
  /** `[width, hidden]`; the graph's `logits` then have this width. */
  weight: StoredTensor;
  bias?: StoredTensor;
  /** Layer norm of the hidden states before it, with weight and bias if it has them. */
  norm?: { epsilon: number; weight?: StoredTensor; bias?: StoredTensor };
}

/**
 * Asks for the states of all tokens after the last norm, and for the rows of the output head of the tokens at the
 * markers (`lexical`), for a graph that reads whole prompts.
 */
export interface StatesReadout {
  states: true;
}

/**
 * Writes the graph of a decoder: token ids and the KV of earlier tokens in, logits and the KV of all tokens out, in the
 * layout that `findLayout` reads. Its weights are those of the checkpoint, which are only read when the graph is
 * written. Throws `engine_failed` if the checkpoint is not what the architecture describes.
 *
 * @param readout what to compute instead of the logits of the requested tokens
 * @param form what tokens see in a graph that reads whole prompts, without earlier tokens, and whose readout is of the
 *   tokens at the markers; the cuts of a graph for devices, which are collected; null for another graph with a cache
 */
export function buildDecoder(
  architecture: Architecture,
  source: WeightSource,
  readout?: Readout,
  form: Sight | DeviceCuts | null = null,
): OnnxModel {
  const { hidden, vocab, names, scales, logitCap, context, family } = architecture;
  const cuts = form instanceof DeviceCuts ? form : null;
  const sight = form instanceof DeviceCuts ? null : form;
  const graph = new GraphBuilder(cuts);
  const weights = new Weights(source, names.embedding);
  const tokens = graph.input('input_ids', DataType.int64, ['batch_size', 'sequence_length']);
  const shared = new AttentionInputs(graph, context, sight);
  const embedding = weights.get(`${names.embedding}.weight`, vocab, hidden);
  const start = graph.scaled(lookup(graph, embedding, tokens), scales.embedding);
  cuts?.embeddings.push({ name: start, width: hidden });
  const layerInputs = layerInputsOf(graph, start, { architecture, weights, tokens });
  const stream = new Stream(graph, start, architecture);
  const last = architecture.layers.at(-1);
  // Everything after the last attention computes token by token, so only the requested ones go on.
  const cutsEarly = !sight && last?.mixer.kind === 'attention' && !last.experts && !layerInputs;
  for (const [number, layer] of architecture.layers.entries()) {
    const at = (name: string | null) => name && `layers.${number}.${name}`;
    const norm = (name: string | null) => (name === null ? undefined : weights.get(`${at(name)}.weight`, hidden));
    const { mixer, experts } = layer;
    const input = stream.read(norm(names.mixerNorm));
    const common = { architecture, weights, layer: number, whole: sight !== null };
    const cut = cutsEarly && number === architecture.layers.length - 1;
    if (cut) stream.cut();
    const mixed =
      mixer.kind === 'attention'
        ? attention(graph, input, { ...common, shared, mixer, cut })
        : mixer.kind === 'delta'
          ? deltaNet(graph, input, { ...common, mixer })
          : convolution(graph, input, { ...common, mixer });
    stream.write(mixed, norm(names.mixerEndNorm));
    const inner = stream.read(norm(names.innerNorm));
    const made = experts
      ? mixture(graph, inner, { ...common, experts })
      : feedForward(graph, inner, { architecture, layer, number, weights });
    stream.write(made, norm(names.innerEndNorm));
    if (layerInputs) {
      const whole = stream.read(undefined);
      const own = layerInput(graph, whole, { architecture, weights, number, input: layerInputs });
      stream.write(own, norm('post_per_layer_input_norm'));
    }
    if (architecture.layerFactors) stream.multiply(graph.weight(weights.get(`layers.${number}.layer_scalar`, 1)));
  }
  const all = stream.read(weights.get(`${names.finalNorm}.weight`, hidden));
  const states = sight || cutsEarly ? all : graph.atLogitRows(all, hidden);
  const head = weights.head(vocab, hidden);
  if (readout && 'states' in readout) {
    const lexical = graph.add('Gather', [graph.weight(head ?? embedding), graph.atMarkers(tokens)]);
    graph.output('states', ['batch_size', 'sequence_length', hidden], states);
    graph.output('lexical', ['batch_size', 'markers', hidden], lexical);
  } else {
    const [logits, width] = outputs(sight ? graph.atMarkers(states) : states, readout);
    graph.output('logits', ['batch_size', sight ? 'markers' : 'read_rows', width], logits);
  }
  weights.checkAllGiven();
  return graph.model(family);

  function outputs(last: string, readout: TokenReadout | LinearReadout | undefined): [logits: string, width: number] {
    // A linear readout takes the place of the head, which the checkpoint then need not have.
    if (readout && 'weight' in readout) return [readoutOf(graph, last, readout, hidden), readout.weight.dims[0] ?? 0];
    if (!head && !architecture.tied) throw unusable('its checkpoint lacks the weight "lm_head.weight"');
    const matrix = head ?? embedding;
    const product = readout ? exactLinear(graph, last, rowsOf(matrix, readout.tokens)) : linear(graph, last, matrix);
    const scaled = graph.scaled(product, scales.logits);
    return [logitCap === null ? scaled : graph.capped(scaled, logitCap), readout?.tokens.length ?? vocab];
  }
}

/** Holds the residual stream: each part of a layer reads its norm, and adds to it. */
class Stream {
  readonly #graph: GraphBuilder;
  readonly #architecture: Architecture;
  #sum: string;
  /** Result of the last part, to be added together with the next norm. */
  #pending: string | null = null;

  constructor(graph: GraphBuilder, start: string, architecture: Architecture) {
    this.#graph = graph;
    this.#sum = start;
    this.#architecture = architecture;
  }

  /** Returns the norm of the stream, or the stream itself without a norm. */
  read(norm: StoredTensor | undefined): string {
    if (this.#pending === null) return norm ? rmsNorm(this.#graph, this.#sum, norm, this.#architecture) : this.#sum;
    const both = [this.#sum, this.#pending] as const;
    this.#pending = null;
    if (!norm) {
      this.#sum = this.#graph.add('Add', [...both]);
      return this.#sum;
    }
    const { normed, sum } = skipNorm(this.#graph, both, norm, this.#architecture);
    this.#sum = sum;
    return normed;
  }

  /** Leaves only the rows whose logits are computed, to which a part adds only these. */
  cut(): void {
    this.#sum = this.#graph.atLogitRows(this.#sum, this.#architecture.hidden);
  }

  /** Multiplies the whole stream. */
  multiply(factor: string): void {
    this.#sum = this.#graph.add('Mul', [this.read(undefined), factor]);
  }

  /** Adds what a part has computed, after its own norm if it has one. */
  write(value: string, norm: StoredTensor | undefined): void {
    const { scales } = this.#architecture;
    const normed = norm ? rmsNorm(this.#graph, value, norm, this.#architecture) : value;
    this.#pending = this.#graph.scaled(normed, scales.residual);
  }
}

/**
 * Adds the embeddings that each layer has of its own, `[batch, rows, layers, size]`, mixed with a projection of the
 * common ones (Gemma 4). Returns null if layers have none.
 */
function layerInputsOf(
  graph: GraphBuilder,
  embedded: string,
  { architecture, weights, tokens }: { architecture: Architecture; weights: Weights; tokens: string },
): string | null {
  const { layerInputs, layers, hidden } = architecture;
  if (!layerInputs) return null;
  const { size, vocab } = layerInputs;
  const width = layers.length * size;
  const split = (x: string) => graph.add('Reshape', [x, graph.integers(0, 0, layers.length, size)]);
  const table = weights.get('embed_tokens_per_layer.weight', vocab, width);
  const own = graph.scaled(lookup(graph, table, tokens), Math.fround(Math.sqrt(size)));
  graph.cuts?.embeddings.push({ name: own, width });
  const projected = linear(graph, embedded, weights.get('per_layer_model_projection.weight', width, hidden));
  const norm = weights.get('per_layer_projection_norm.weight', size);
  const normed = rmsNorm(graph, split(graph.scaled(projected, hidden ** -0.5)), norm, architecture);
  return graph.scaled(graph.add('Add', [normed, split(own)]), Math.SQRT1_2);
}

/** Adds what a layer makes of its own embeddings, gated by the stream `x`. */
function layerInput(
  graph: GraphBuilder,
  x: string,
  parts: { architecture: Architecture; weights: Weights; number: number; input: string },
): string {
  const { architecture, weights, number, input } = parts;
  const { hidden, activation, layerInputs } = architecture;
  const size = layerInputs?.size ?? 0;
  const at = (name: string) => `layers.${number}.${name}.weight`;
  const gate = activated(graph, linear(graph, x, weights.get(at('per_layer_input_gate'), size, hidden)), activation);
  const own = graph.add('Gather', [input, graph.integer(number)], { axis: 2 });
  return linear(graph, graph.add('Mul', [gate, own]), weights.get(at('per_layer_projection'), hidden, size));
}

interface LayerParts {
  architecture: Architecture;
  layer: Layer;
  number: number;
  weights: Weights;
}

/** Adds the gated feed-forward part of a layer. */
function feedForward(graph: GraphBuilder, x: string, { architecture, layer, number, weights }: LayerParts): string {
  const { hidden, names, activation } = architecture;
  const { inner, innerBias } = layer;
  const project = (input: string, name: string, outputs: number, inputs: number) => {
    const path = `layers.${number}.${name}`;
    const bias = weights.optional(innerBias, `${path}.bias`, outputs);
    return linear(graph, input, weights.get(`${path}.weight`, outputs, inputs), bias);
  };
  const [gate = '', up = ''] =
    names.gateUp === null
      ? [project(x, names.gate, inner, hidden), project(x, names.up, inner, hidden)]
      : graph.split(project(x, names.gateUp, 2 * inner, hidden), [inner, inner]);
  return project(graph.add('Mul', [activated(graph, gate, activation), up]), names.down, hidden, inner);
}

function activated(graph: GraphBuilder, x: string, activation: Activation): string {
  switch (activation) {
    case 'silu':
      return graph.add('Mul', [x, graph.add('Sigmoid', [x])]);
    case 'gelu_tanh':
      return graph.cuts ? graph.add('Gelu', [x], { approximate: 'tanh' }) : graph.contrib('FastGelu', [x]);
    case 'gelu':
      return graph.contrib('Gelu', [x]);
    case 'relu':
      return graph.add('Relu', [x]);
    case 'relu2': {
      const positive = graph.add('Relu', [x]);
      return graph.add('Mul', [positive, positive]);
    }
  }
}

function readoutOf(graph: GraphBuilder, x: string, { weight, bias, norm }: LinearReadout, hidden: number): string {
  if (weight.dims.length !== 2 || weight.dims[1] !== hidden) {
    throw unusable(`the readout "${weight.name}" does not read the ${hidden} elements of a hidden state`);
  }
  if (!norm) return exactLinear(graph, x, weight, bias);
  const gain = norm.weight
    ? graph.weight(norm.weight)
    : graph.computed('readout/ones', [hidden], () => [new Float32Array(hidden).fill(1)]);
  const inputs = [x, gain, ...(norm.bias ? [graph.weight(norm.bias)] : [])];
  const normed = graph.add('LayerNormalization', inputs, { axis: -1, epsilon: { float: norm.epsilon } });
  return exactLinear(graph, normed, weight, bias);
}
