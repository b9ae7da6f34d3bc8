import { rowsOf, type StoredTensor, type WeightSource } from '../checkpoint/weight-source.ts';
import { DataType, type Model } from '../onnx/format/model.ts';
import { unusable } from '../onnx/unusable.ts';
import { deberta, readDeberta } from './deberta.ts';
import { GraphBuilder } from './graph-builder.ts';
import { exactLinear } from './linear.ts';
import { EncoderWeights } from './modernbert.ts';

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
export function buildGliner2(role: string, config: object, source: WeightSource, longest: number): Model {
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
      const told = graph.add('Squeeze', [read, graph.integers(1)]);
      const joined = graph.add('Concat', [told, graph.add('Expand', [labels, shape])], { axis: -1 });
      const queries = pair(joined, 'count_embed.projector', [2 * hidden, 4 * hidden, hidden], 2);
      graph.output('label_queries', [INSTANCES, 'labels', hidden], queries);
      break;
    }
    default:
      throw unusable(`no graph ${role} is written for a checkpoint of GLiNER2`);
  }
  return graph.model(`gliner2/${role}`);
}

/** Weights of the other graphs. */
const OTHER_HEADS = /^(?:classifier|count_pred|count_embed|span_rep)\.|\.position_ids$/u;
