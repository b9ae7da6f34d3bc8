import { DataType, makeTensor } from '../onnx/format/model.ts';
import { ConfigKeys } from './config-keys.ts';
import type { GraphBuilder } from './graph-builder.ts';
import { exactLinear, linear } from './linear.ts';
import { type EncoderWeights, layerWriters } from './modernbert.ts';

/** Describes a DeBERTa-v2 or v3 encoder, as its `config.json` does. */
export interface Deberta {
  hidden: number;
  inner: number;
  heads: number;
  vocab: number;
  epsilon: number;
  layers: number;
  /** Number of buckets of distances to one side, and the distance from which all are in the last one. */
  buckets: number;
  farthest: number;
}

/** Reads the configuration of a DeBERTa encoder. Throws `Refused` for a key or value that is not known. */
export function readDeberta(config: object): Deberta {
  const keys = new ConfigKeys(config, { norm_rel_ebd: 'none', share_att_key: false, max_relative_positions: -1 });
  keys.only({
    model_type: ['deberta-v2'],
    hidden_act: ['gelu'],
    pooler_hidden_act: ['gelu'],
    relative_attention: [true],
    share_att_key: [true],
    norm_rel_ebd: ['layer_norm'],
    position_biased_input: [false],
    type_vocab_size: [0],
    conv_kernel_size: [0],
  });
  const both = keys.value('pos_att_type');
  const kinds = typeof both === 'string' ? both.split('|') : both;
  if (!Array.isArray(kinds) || kinds.toSorted().join() !== 'c2p,p2c') throw keys.refusal('pos_att_type');
  const hidden = keys.size('hidden_size');
  if (keys.size('embedding_size', hidden) !== hidden) throw keys.refusal('embedding_size');
  const positions = keys.size('max_position_embeddings');
  const stated = keys.number('max_relative_positions');
  const deberta: Deberta = {
    hidden,
    inner: keys.size('intermediate_size'),
    heads: keys.size('num_attention_heads'),
    vocab: keys.size('vocab_size'),
    epsilon: keys.number('layer_norm_eps'),
    layers: keys.size('num_hidden_layers'),
    buckets: keys.size('position_buckets'),
    farthest: stated > 0 ? stated : positions,
  };
  keys.ignore(['attention_probs_dropout_prob', 'hidden_dropout_prob', 'pooler_dropout', 'pooler_hidden_size']);
  keys.ignore(['legacy', 'tie_word_embeddings', 'summary_type', 'summary_last_dropout', 'summary_use_proj']);
  keys.ignore(['output_past', 'padding_idx', 'classifier_dropout', 'cls_dropout']);
  keys.end();
  return deberta;
}

/**
 * Adds a DeBERTa encoder: token ids and attention mask in, the states of its last layer out, `[rows, tokens, hidden]`.
 *
 * @param prefix beginning of the names of its weights
 * @param longest number of tokens of the longest row
 */
export function deberta(
  graph: GraphBuilder,
  encoder: Deberta,
  weights: EncoderWeights,
  { prefix, longest }: { prefix: string; longest: number },
): string {
  const { hidden, inner, vocab, layers } = encoder;
  const tokens = graph.input('input_ids', DataType.int64, ['rows', 'tokens']);
  const mask = graph.input('attention_mask', DataType.int64, ['rows', 'tokens']);
  const { norm, dense } = layerWriters(graph, encoder, weights, prefix, 'get');
  const embedding = graph.weight(weights.get(`${prefix}embeddings.word_embeddings.weight`, vocab, hidden));
  const distances = norm(
    graph.weight(weights.get(`${prefix}encoder.rel_embeddings.weight`, 2 * encoder.buckets, hidden)),
    'encoder.LayerNorm',
  );
  const seen = graph.add('Cast', [mask], { to: DataType.float });
  const hiddenTokens = graph.add('Mul', [graph.add('Sub', [seen, graph.float(1)]), graph.float(UNSEEN)]);
  const shared: Shared = {
    bias: graph.add('Unsqueeze', [hiddenTokens, graph.integers(1, 2)]),
    buckets: bucketsOfPairs(graph, tokens, encoder, longest),
    distances,
  };
  let x = norm(graph.add('Gather', [embedding, tokens]), 'embeddings.LayerNorm');
  for (let layer = 0; layer < layers; layer++) {
    const at = `encoder.layer.${layer}`;
    const mixed = attention(
      graph,
      encoder,
      shared,
      (input, name, exact) => {
        const path = `${prefix}${at}.attention.self.${name}`;
        const parts = [weights.get(`${path}.weight`, hidden, hidden), weights.get(`${path}.bias`, hidden)] as const;
        return exact ? exactLinear(graph, distances, ...parts) : linear(graph, input, ...parts);
      },
      x,
    );
    const added = graph.add('Add', [x, dense(mixed, `${at}.attention.output.dense`, hidden, hidden)]);
    x = norm(added, `${at}.attention.output.LayerNorm`);
    const wide = graph.contrib('Gelu', [dense(x, `${at}.intermediate.dense`, inner, hidden)]);
    x = norm(graph.add('Add', [x, dense(wide, `${at}.output.dense`, hidden, inner)]), `${at}.output.LayerNorm`);
  }
  return x;
}

/** Subtracted from the scores of padding. */
const UNSEEN = 1e30;

/** Holds what all layers share. */
interface Shared {
  /** Added to the scores: 0, or for padding a large negative number, `[rows, 1, 1, tokens]`. */
  bias: string;
  /** Number of the distance of each pair of query and key, `[rows, heads, tokens, tokens]`. */
  buckets: string;
  /** Embeddings of the distances, `[2 · buckets, hidden]`. */
  distances: string;
}

/**
 * Adds the disentangled attention of a layer: of the contents of query and key, of the query's content and the key's
 * distance, and of the key's content and the query's distance.
 */
function attention(
  graph: GraphBuilder,
  { hidden, heads }: Deberta,
  { bias, buckets }: Shared,
  project: (input: string, name: string, ofDistances: boolean) => string,
  x: string,
): string {
  const size = hidden / heads;
  const split = (input: string): string =>
    graph.add('Transpose', [graph.add('Reshape', [input, graph.integers(0, 0, heads, size)])], { perm: [0, 2, 1, 3] });
  // The embeddings of distances have no rows: one is added, over which products are repeated.
  const distance = (name: string): string => split(graph.add('Unsqueeze', [project(x, name, true), graph.integers(0)]));
  const [query, key, value] = ['query_proj', 'key_proj', 'value_proj'].map((name) => split(project(x, name, false)));
  const swapped = (input = ''): string => graph.add('Transpose', [input], { perm: [0, 1, 3, 2] });
  const factor = graph.float(1 / Math.sqrt(3 * size));
  const scaled = graph.add('Mul', [query ?? '', factor]);
  const contents = graph.add('MatMul', [scaled, swapped(key)]);
  const ofQuery = graph.add('MatMul', [scaled, swapped(distance('key_proj'))]);
  const ofKey = graph.add('MatMul', [graph.add('Mul', [distance('query_proj'), factor]), swapped(key)]);
  const scores = [
    graph.add('GatherElements', [ofQuery, buckets], { axis: 3 }),
    graph.add('GatherElements', [ofKey, buckets], { axis: 2 }),
    bias,
  ].reduce((sum, part) => graph.add('Add', [sum, part]), contents);
  const mixed = graph.add('MatMul', [graph.add('Softmax', [scores], { axis: -1 }), value ?? '']);
  const joined = graph.add('Transpose', [mixed], { perm: [0, 2, 1, 3] });
  return graph.add('Reshape', [joined, graph.integers(0, 0, hidden)]);
}

/** Returns the number of the distance from each query to each key, for all rows and heads. */
function bucketsOfPairs(
  graph: GraphBuilder,
  tokens: string,
  { buckets, farthest, heads }: Deberta,
  longest: number,
): string {
  const numbers = BigInt64Array.from({ length: 2 * longest - 1 }, (_, i) =>
    BigInt(bucketOf(i - longest + 1, buckets, farthest)),
  );
  const table = graph.tensor(makeTensor('distance_buckets', [numbers.length], numbers));
  const shape = graph.add('Shape', [tokens]);
  const dim = (index: number): string => graph.add('Gather', [shape, graph.integers(index)], { axis: 0 });
  const count = graph.add('Squeeze', [dim(1), graph.integers(0)]);
  const places = graph.add('Range', [graph.integer(0), count, graph.integer(1)]);
  const [rows, columns] = [1, 0].map((axis) => graph.add('Unsqueeze', [places, graph.integers(axis)]));
  const distance = graph.add('Sub', [rows ?? '', columns ?? '']);
  const pairs = graph.add('Gather', [table, graph.add('Add', [distance, graph.integer(longest - 1)])]);
  // There is a number for each head, too, so small ones save memory.
  const numbered = graph.add('Cast', [pairs], { to: DataType.int32 });
  const all = graph.add('Concat', [dim(0), graph.integers(heads), dim(1), dim(1)], { axis: 0 });
  return graph.add('Expand', [numbered, all]);
}

/**
 * Returns the number of a distance: each short one has its own, and longer ones share numbers by their logarithm. Each
 * step in 32-bit floats, as PyTorch computes them.
 */
export function bucketOf(distance: number, buckets: number, farthest: number): number {
  const middle = Math.floor(buckets / 2);
  const length = Math.abs(distance);
  if (length <= middle) return buckets + distance;
  const log = (value: number): number => Math.fround(Math.log(Math.fround(value)));
  const share = Math.fround(log(length / middle) / log((farthest - 1) / middle));
  const bucket = Math.ceil(Math.fround(share * (middle - 1))) + middle;
  return Math.min(Math.max(buckets + Math.sign(distance) * bucket, 0), 2 * buckets - 1);
}
