import { rowsOf, type StoredTensor, type WeightSource } from '../checkpoint/weight-source.ts';
import { DataType, type OnnxModel } from '../onnx/format/model.ts';
import { unusable } from '../onnx/unusable.ts';
import { deberta, readDeberta } from './deberta.ts';
import { GraphBuilder } from './graph-builder.ts';
import { exactLinear } from './linear.ts';
import { EncoderWeights, layerNorm } from './modernbert.ts';

/** Names of the graphs of a checkpoint; the first two classify. */
export const GLINER2_ROLES = ['encoder', 'classifier', 'span_rep', 'count_pred', 'count_embed_all'] as const;
/** Largest number of instances of a structure. */
const INSTANCES = 20;

/**
 * Writes one of the graphs of a GLiNER2 checkpoint: its DeBERTa `encoder`, the `classifier` of labels, `span_rep` of
 * the states at both ends of spans, `count_pred` of the number of instances, and `count_embed_all` of the queries of
 * all instances. Throws `engine_failed` for a checkpoint that does not fit, and `Refused` for an unknown configuration.
 *
 * @param config parsed configuration of the encoder
 * @param longest number of tokens of the longest row
 */
export function buildGliner2(role: string, config: object, source: WeightSource, longest: number): OnnxModel {
  const graph = new GraphBuilder();
  const weights = new EncoderWeights(source);
  const encoder = readDeberta(config);
  const { hidden } = encoder;
  const dense = (x: string, name: string, outputs: number, inputs: number): string =>
    exactLinear(graph, x, weights.get(`${name}.weight`, outputs, inputs), weights.get(`${name}.bias`, outputs));
  /** Adds two layers with a rectifier between them. */
  const pair = (x: string, name: string, sizes: readonly [number, number, number], second: number): string =>
    dense(graph.add('Relu', [dense(x, `${name}.0`, sizes[1], sizes[0])]), `${name}.${second}`, sizes[2], sizes[1]);
  const states = (): string => graph.input('hidden_state', DataType.float, ['k', hidden]);
  switch (role) {
    case 'encoder': {
      const all = deberta(graph, encoder, weights, { prefix: 'encoder.', longest });
      graph.output('hidden_state', ['rows', 'tokens', hidden], all);
      weights.checkAllGiven(OTHER_HEADS);
      break;
    }
    case 'classifier':
      graph.output('logits', ['k', 1], pair(states(), 'classifier', [hidden, 2 * hidden, 1], 2));
      break;
    case 'count_pred':
      graph.output('counts', ['k', INSTANCES], pair(states(), 'count_pred', [hidden, 2 * hidden, INSTANCES], 2));
      break;
    case 'span_rep': {
      const at = 'span_rep.span_rep_layer';
      const all = graph.input('hidden_states', DataType.float, ['batch', 'tokens', hidden]);
      const ends = [
        ['span_start_idx', 'project_start'],
        ['span_end_idx', 'project_end'],
      ].map(([name = '', projection]) => {
        const projected = pair(all, `${at}.${projection}`, [hidden, 4 * hidden, hidden], 3);
        const places = graph.add('Unsqueeze', [
          graph.input(name, DataType.int64, ['batch', 'spans']),
          graph.integers(-1),
        ]);
        return graph.add('GatherND', [projected, places], { batch_dims: 1 });
      });
      const both = graph.add('Relu', [graph.add('Concat', ends, { axis: -1 })]);
      const found = pair(both, `${at}.out_project`, [2 * hidden, 4 * hidden, hidden], 3);
      graph.output('span_rep', ['batch', 'spans', hidden], found);
      break;
    }
    case 'count_embed_all': {
      const labels = graph.input('label_embeddings', DataType.float, ['labels', hidden]);
      const counter = { graph, weights, hidden, dense, pair };
      const queries = COUNTERS[counterOf(weights)](counter, ...readCounts(counter, labels));
      graph.output('label_queries', [INSTANCES, 'labels', hidden], queries);
      break;
    }
    default:
      throw unusable(`no graph ${role} is written for a checkpoint of GLiNER2`);
  }
  return graph.model(`gliner2/${role}`);
}

/** Holds what the queries of instances are computed with. */
interface Counter {
  graph: GraphBuilder;
  weights: EncoderWeights;
  hidden: number;
  dense(x: string, name: string, outputs: number, inputs: number): string;
  pair(x: string, name: string, sizes: readonly [number, number, number], second: number): string;
}

/**
 * Adds the recurrent unit that reads the numbers of instances, beginning with the states of the labels. Returns its
 * states, and those of the labels repeated for each instance, `[instances, labels, hidden]`.
 */
function readCounts({ graph, weights, hidden }: Counter, labels: string): [read: string, labels: string] {
  const row = (x: string): string => graph.add('Unsqueeze', [x, graph.integers(0)]);
  // The gates of PyTorch's unit are reset, update, new; those of ONNX update, reset, new.
  const gates = (name: string, ...rest: number[]): string => {
    const stored = weights.get(`count_embed.gru.${name}`, 3 * hidden, ...rest);
    const rows = [1, 0, 2].flatMap((gate) => Array.from({ length: hidden }, (_, i) => gate * hidden + i));
    return graph.weight({ ...rowsOf(stored, rows), name: `${stored.name}/gates` } satisfies StoredTensor);
  };
  const counts = graph.weight(weights.get('count_embed.pos_embedding.weight', INSTANCES, hidden));
  const lengths = graph.add('Shape', [row(labels)]);
  const shape = graph.add(
    'Concat',
    [graph.integers(INSTANCES), graph.add('Slice', [lengths, graph.integers(1), graph.integers(3)])],
    { axis: 0 },
  );
  const steps = graph.add('Expand', [graph.add('Unsqueeze', [counts, graph.integers(1)]), shape]);
  const bias = graph.add('Concat', [gates('bias_ih_l0'), gates('bias_hh_l0')], { axis: 0 });
  const inputs = [
    steps,
    row(gates('weight_ih_l0', hidden)),
    row(gates('weight_hh_l0', hidden)),
    row(bias),
    '',
    row(labels),
  ];
  const read = graph.add('GRU', inputs, { hidden_size: hidden, linear_before_reset: 1 });
  return [graph.add('Squeeze', [read, graph.integers(1)]), graph.add('Expand', [labels, shape])];
}

/** Adds what makes queries of the counted states, for each of the counters (`counting_layer` of config.json). */
const COUNTERS = {
  count_lstm: ({ graph, hidden, pair }: Counter, read: string, labels: string): string =>
    pair(
      graph.add('Concat', [read, labels], { axis: -1 }),
      'count_embed.projector',
      [2 * hidden, 4 * hidden, hidden],
      2,
    ),
  count_lstm_v2: lookAtLabels,
  count_lstm_moe: askExperts,
} as const;

/** Tells the counter of a checkpoint by its weights. */
function counterOf(weights: EncoderWeights): keyof typeof COUNTERS {
  if (weights.has('count_embed.transformer.in_projector.weight')) return 'count_lstm_v2';
  return weights.has('count_embed.w1') ? 'count_lstm_moe' : 'count_lstm';
}

/** Width, heads and layers of the transformer of `count_lstm_v2`. */
const SMALL = { width: 128, heads: 4, layers: 2 };

/** Adds a small transformer over the labels of each instance. */
function lookAtLabels({ graph, weights, hidden, dense, pair }: Counter, read: string, labels: string): string {
  const at = 'count_embed.transformer';
  const { width, heads } = SMALL;
  const norm = (x: string, name: string): string =>
    layerNorm(graph, x, weights.get(`${name}.weight`, width), weights.get(`${name}.bias`, width), 1e-5);
  const both = graph.add('Add', [read, labels]);
  let x = dense(both, `${at}.in_projector`, width, hidden);
  for (let layer = 0; layer < SMALL.layers; layer++) {
    const own = `${at}.transformer.layers.${layer}`;
    const inner = weights.get(`${own}.self_attn.in_proj_weight`, 3 * width, width);
    const bias = weights.get(`${own}.self_attn.in_proj_bias`, 3 * width);
    const parts = graph.split(exactLinear(graph, x, inner, bias), [width, width, width]);
    const mixed = graph.contrib('MultiHeadAttention', parts, { num_heads: heads });
    x = norm(graph.add('Add', [x, dense(mixed, `${own}.self_attn.out_proj`, width, width)]), `${own}.norm1`);
    const wide = graph.add('Relu', [dense(x, `${own}.linear1`, 2 * width, width)]);
    x = norm(graph.add('Add', [x, dense(wide, `${own}.linear2`, width, 2 * width)]), `${own}.norm2`);
  }
  const joined = graph.add('Concat', [x, both], { axis: -1 });
  const shown = graph.add('Relu', [pair(joined, `${at}.out_projector`, [width + hidden, hidden, hidden], 2)]);
  return dense(shown, `${at}.out_projector.4`, hidden, hidden);
}

/** Adds experts, whose results are weighted by a router. */
function askExperts({ graph, weights, hidden, dense }: Counter, read: string): string {
  const at = 'count_embed';
  const shown = graph.contrib('Gelu', [dense(read, `${at}.router.0`, hidden, hidden)]);
  const gates = graph.add('Softmax', [dense(shown, `${at}.router.2`, EXPERTS, hidden)], { axis: -1 });
  const inner = 2 * hidden;
  // One product of all experts: [instances, labels, 1, 1, hidden] with [experts, hidden, inner].
  const given = graph.add('Unsqueeze', [read, graph.integers(2, 3)]);
  const layer = (x: string, number: number, inputs: number, outputs: number): string => {
    const weight = graph.weight(weights.get(`${at}.w${number}`, EXPERTS, inputs, outputs));
    const bias = graph.weight(weights.get(`${at}.b${number}`, EXPERTS, outputs));
    return graph.add('Add', [graph.add('MatMul', [x, weight]), graph.add('Unsqueeze', [bias, graph.integers(1)])]);
  };
  const found = layer(graph.contrib('Gelu', [layer(given, 1, hidden, inner)]), 2, inner, hidden);
  const weighted = graph.add('Mul', [found, graph.add('Unsqueeze', [gates, graph.integers(3, 4)])]);
  return graph.add('ReduceSum', [weighted, graph.integers(2, 3)], { keepdims: 0 });
}

/** Number of experts of `count_lstm_moe`. */
const EXPERTS = 4;

/** Weights of the other graphs. */
const OTHER_HEADS = /^(?:classifier|count_pred|count_embed|span_rep)\.|\.position_ids$/u;
