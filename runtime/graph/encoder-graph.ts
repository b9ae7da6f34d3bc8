import { property } from '../../lib/json/property.ts';
import type { WeightSource } from '../checkpoint/weight-source.ts';
import { type EncoderContract, rowTokens } from '../contracts/encoder-contracts.ts';
import { DataType, type OnnxModel } from '../onnx/format/model.ts';
import { unusable } from '../onnx/unusable.ts';
import { Refused } from './config-keys.ts';
import { deberta, readDeberta } from './deberta.ts';
import { GraphBuilder } from './graph-builder.ts';
import { exactLinear } from './linear.ts';
import { EncoderWeights, layerNorm, type ModernBert, modernBert, readModernBert } from './modernbert.ts';

/** Holds what a family's head is added to. */
interface Head {
  graph: GraphBuilder;
  weights: EncoderWeights;
  encoder: Pick<ModernBert, 'hidden' | 'epsilon'> & { pooling?: ModernBert['pooling'] };
  /** States of all tokens, `[rows, tokens, hidden]`. */
  states: string;
}

/** Describes a family whose graph is written: the prefix of its encoder's weights, and its head. */
interface Family {
  prefix: string;
  /** Adds the head and the outputs of the graph. */
  head(head: Head): void;
}

/** Epsilon of PyTorch's layer norm. */
const EPSILON = 1e-5;

const FAMILIES: Partial<Record<EncoderContract['name'], Family>> = {
  laya: { prefix: 'encoder.', head: layaHead },
  'decision-tune': { prefix: '', head: decisionTuneHead },
  nli: { prefix: 'model.', head: classifierHead },
  'open-decision': { prefix: 'encoder.', head: openDecisionHeads },
  gliclass: { prefix: 'model.encoder_model.', head: gliclassHead },
  verdict: { prefix: 'model.encoder_model.', head: gliclassHead },
};

/** Families whose encoder may be DeBERTa instead. */
const DEBERTA_FAMILIES: Partial<Record<EncoderContract['name'], Family>> = {
  gliclass: { prefix: 'model.encoder_model.', head: gliclassHead },
  nli: { prefix: 'deberta.', head: pooledHead },
};

/** Weights that a graph leaves out: Laya's second head, and buffers. */
const OTHERS = /^(?:act_head\.|temperature$|model\.logit_scale$)|\.position_ids$/u;

/**
 * Writes the graph of an encoder model from its checkpoint. Throws `engine_failed` for a family or checkpoint that is
 * not known, and `Refused` for an unknown configuration.
 *
 * @param config parsed `config.json` of the encoder
 */
export function buildEncoder(contract: EncoderContract, config: object, source: WeightSource): OnnxModel {
  const isDeberta = property(config, 'model_type') === 'deberta-v2';
  const family = (isDeberta ? DEBERTA_FAMILIES : FAMILIES)[contract.name];
  if (!family) throw unusable(`no graph is written for a checkpoint of ${contract.name}`);
  const { prefix } = family;
  const graph = new GraphBuilder();
  const weights = new EncoderWeights(source);
  if (isDeberta) {
    const encoder = readDeberta(config);
    const states = deberta(graph, encoder, weights, { prefix, longest: rowTokens(contract) });
    family.head({ graph, weights, encoder, states });
  } else {
    const encoder = readModernBert(config);
    family.head({ graph, weights, encoder, states: modernBert(graph, encoder, weights, prefix) });
  }
  weights.checkAllGiven(OTHERS);
  return graph.model(contract.name);
}

/** Returns the configuration of a model's encoder among its parsed files; it may be a part of `config.json`. */
export function encoderConfig(json: Readonly<Record<string, unknown>>): unknown {
  const config = json['encoder_config.json'] ?? json['config.json'];
  return property(config, 'encoder_config') ?? config;
}

/** Returns why no graph can be written for an encoder's parsed configuration; null if one can. */
export function encoderRefusal(config: unknown): string | null {
  try {
    if (typeof config !== 'object' || config === null) throw new Refused('config.json is not an object');
    if (property(config, 'model_type') === 'deberta-v2') readDeberta(config);
    else readModernBert(config);
    return null;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}

/** Returns the state of the first token of each row, `[rows, hidden]`. */
function first({ graph, states }: Head): string {
  return graph.add('Gather', [states, graph.integer(0)], { axis: 1 });
}

function dense({ graph, weights }: Head, x: string, name: string, outputs: number, inputs: number): string {
  const weight = weights.get(`${name}.weight`, outputs, inputs);
  return exactLinear(graph, x, weight, weights.optional(`${name}.bias`, outputs));
}

function norm({ graph, weights, encoder: { hidden } }: Head, x: string, name: string, epsilon = EPSILON): string {
  return layerNorm(graph, x, weights.get(`${name}.weight`, hidden), weights.optional(`${name}.bias`, hidden), epsilon);
}

/** Removes the last axis, which has one element, and makes the result the logits. */
function logitsOf({ graph }: Head, x: string, name = 'logits', dims: string[] = ['rows', 'markers']): void {
  graph.output(name, dims, graph.add('Squeeze', [x, graph.integers(-1)]));
}

function decisionTuneHead(head: Head): void {
  logitsOf(head, dense(head, head.graph.atMarkers(head.states), 'head', 1, head.encoder.hidden));
}

function classifierHead(head: Head): void {
  const { graph, weights, encoder, states } = head;
  const { hidden, pooling, epsilon } = encoder;
  const labels = weights.has('classifier.bias')
    ? weights.get('classifier.bias', ...sizeOf(weights)).dims[0]
    : undefined;
  const pooled = pooling === 'cls' ? first(head) : mean(graph, states);
  const shown = norm(
    head,
    graph.contrib('Gelu', [dense(head, pooled, 'head.dense', hidden, hidden)]),
    'head.norm',
    epsilon,
  );
  graph.output('logits', ['rows', 'labels'], dense(head, shown, 'classifier', labels ?? 2, hidden));
}

function pooledHead(head: Head): void {
  const { graph, weights, encoder } = head;
  const { hidden } = encoder;
  const pooled = graph.contrib('Gelu', [dense(head, first(head), 'pooler.dense', hidden, hidden)]);
  const [labels = 2] = sizeOf(weights);
  graph.output('logits', ['rows', 'labels'], dense(head, pooled, 'classifier', labels, hidden));
}

/** Returns the dimensions of the classifier's bias: two or three labels. */
function sizeOf(weights: EncoderWeights): number[] {
  for (const labels of [2, 3]) {
    try {
      return weights.get('classifier.bias', labels).dims;
    } catch {}
  }
  throw unusable('its classifier has more than three labels');
}

/** Returns the mean of the states of a row's tokens, without padding. */
function mean(graph: GraphBuilder, states: string): string {
  const mask = graph.add('Unsqueeze', [
    graph.add('Cast', ['attention_mask'], { to: DataType.float }),
    graph.integers(-1),
  ]);
  const axis = graph.integers(1);
  const sum = graph.add('ReduceSum', [graph.add('Mul', [states, mask]), axis], { keepdims: 0 });
  return graph.add('Div', [sum, graph.add('ReduceSum', [mask, axis], { keepdims: 0 })]);
}

/** Number of parts into which Open-Decision divides the range of a score. */
const SCORE_BINS = 20;

function openDecisionHeads(head: Head): void {
  const { graph, encoder } = head;
  const pooled = first(head);
  const out = (name: string, outputs: number): string => {
    const shown = graph.contrib('Gelu', [dense(head, pooled, `${name}.dense`, encoder.hidden, encoder.hidden)]);
    return dense(head, norm(head, shown, `${name}.norm`), `${name}.out`, outputs, encoder.hidden);
  };
  logitsOf(head, out('choice_head', 1), 'choice_logits', ['rows']);
  graph.output('score_logits', ['rows', 'bins'], out('score_head', SCORE_BINS));
}

function gliclassHead(head: Head): void {
  const { graph, encoder } = head;
  const projected = (x: string, name: string): string => {
    const inner = graph.contrib('Gelu', [dense(head, x, `model.${name}.linear_1`, encoder.hidden, encoder.hidden)]);
    return dense(head, inner, `model.${name}.linear_2`, encoder.hidden, encoder.hidden);
  };
  const text = graph.add('Unsqueeze', [projected(first(head), 'text_projector'), graph.integers(-1)]);
  logitsOf(head, graph.add('MatMul', [projected(graph.atMarkers(head.states), 'classes_projector'), text]));
}

/** Elements of an attention head of Laya's layers. */
const HEAD_SIZE = 64;

function layaHead(head: Head): void {
  const { graph, weights, encoder, states } = head;
  const { hidden } = encoder;
  const heads = Math.max(1, Math.floor(hidden / HEAD_SIZE));
  const types = graph.weight(weights.get('type_emb.weight', 3, hidden));
  const kind = graph.add('Gather', [types, graph.input('qtype', DataType.int64, ['rows'])]);
  let x = graph.add('Add', [states, graph.add('Unsqueeze', [kind, graph.integers(1)])]);
  const mask = graph.add('Cast', ['attention_mask'], { to: DataType.int32 });
  for (let layer = 0; weights.has(`head.layers.${layer}.norm1.weight`); layer++) {
    const at = `head.layers.${layer}`;
    const inner = weights.get(`${at}.self_attn.in_proj_weight`, 3 * hidden, hidden);
    const bias = weights.get(`${at}.self_attn.in_proj_bias`, 3 * hidden);
    const parts = graph.split(exactLinear(graph, norm(head, x, `${at}.norm1`), inner, bias), [hidden, hidden, hidden]);
    const mixed = graph.contrib('MultiHeadAttention', [...parts, '', mask], { num_heads: heads });
    x = graph.add('Add', [x, dense(head, mixed, `${at}.self_attn.out_proj`, hidden, hidden)]);
    const wide = graph.add('Relu', [dense(head, norm(head, x, `${at}.norm2`), `${at}.linear1`, 4 * hidden, hidden)]);
    x = graph.add('Add', [x, dense(head, wide, `${at}.linear2`, hidden, 4 * hidden)]);
  }
  const marked = norm(head, graph.atMarkers(x), 'scorer.0');
  const scored = graph.contrib('Gelu', [dense(head, marked, 'scorer.1', hidden, hidden)]);
  logitsOf(head, dense(head, scored, 'scorer.3', 1, hidden));
}
