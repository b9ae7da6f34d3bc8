import { DataType } from '../../runtime/onnx/format/model.ts';
import { GraphWriter, MS } from './graph-writer.ts';
import { mixer, SHARED } from './mixers.ts';
import type { Shape } from './shapes.ts';

const EPSILON = { epsilon: { float: 1e-6 } };

/**
 * Writes a model with random weights in bfloat16. Its graph is the one that the onnxruntime-genai model builder creates
 * for this shape. The head shares the weights of the embedding.
 */
export function writeRandomModel(folder: string, shape: Shape): void {
  const { hidden, headSize, intermediate, vocabulary, layers, context } = shape;
  const graph = new GraphWriter();
  const add: GraphWriter['add'] = (...node) => graph.add(...node);

  const integers = (name: string, second: string) =>
    graph.graph.inputs.push({ name, dataType: DataType.int64, dims: ['batch_size', second] });
  integers('input_ids', 'sequence_length');
  integers('attention_mask', 'total_sequence_length');
  graph.constant('one', BigInt64Array.of(1n));
  graph.constant('index_one', BigInt64Array.of(1n), []);
  add('ReduceSum', ['attention_mask', 'one'], ['mask_sum'], { keepdims: 0 });
  add('Sub', ['mask_sum', 'one'], ['mask_last']);
  add('Cast', ['mask_last'], [SHARED.lengths], { to: DataType.int32 });
  add('Shape', ['attention_mask'], ['mask_shape']);
  add('Gather', ['mask_shape', 'index_one'], ['total_64'], { axis: 0 });
  add('Cast', ['total_64'], [SHARED.total], { to: DataType.int32 });
  const [cos, sin] = rotaryTables(shape);
  graph.constant(SHARED.cos, cos, [context, headSize / 2]);
  graph.constant(SHARED.sin, sin, [context, headSize / 2]);

  graph.weight('lm_head.weight', [hidden, vocabulary], Math.sqrt(3 / hidden));
  add('Transpose', ['lm_head.weight'], ['embedding'], { perm: [1, 0] });
  let residual = add('Gather', ['embedding', 'input_ids'], ['embedded']);
  const norm = { axis: -1, stash_type: 1, ...EPSILON };
  let x = add('SimplifiedLayerNormalization', [residual, graph.ones('norm.0', hidden)], ['normed.0'], norm);
  for (let layer = 0; layer < layers; layer++) {
    const name = (part: string) => `layer.${layer}.${part}`;
    const skip = (from: string, part: string, last = false): void => {
      const outputs = last ? [name(part)] : [name(part), '', '', name(`${part}.residual`)];
      const weight = graph.ones(name(`${part}.weight`), hidden);
      add('SkipSimplifiedLayerNormalization', [residual, from, weight], outputs, EPSILON, MS);
      residual = name(`${part}.residual`);
      x = name(part);
    };
    skip(mixer(graph, shape, layer, x), 'post_attention');
    const gate = graph.linear(name('gate'), x, hidden, intermediate);
    const up = graph.linear(name('up'), x, hidden, intermediate);
    const silu = add('Mul', [gate, add('Sigmoid', [gate], [name('sigmoid')])], [name('silu')]);
    const down = graph.linear(name('down'), add('Mul', [silu, up], [name('gated')]), intermediate, hidden);
    skip(down, 'output', layer === layers - 1);
  }
  graph.graph.outputs.unshift({
    name: 'logits',
    dataType: DataType.bfloat16,
    dims: ['batch_size', 'sequence_length', vocabulary],
  });
  add('MatMul', [x, 'lm_head.weight'], ['logits']);
  graph.write(folder, context);
}

/**
 * Computes the cosines and sines of rotary positions, as matrices with a row for each position and a column for each
 * pair of dimensions. Source: Su et al. 2021, RoFormer, equation 15.
 */
function rotaryTables({ context, headSize, ropeTheta }: Shape): [cos: Float32Array, sin: Float32Array] {
  const half = headSize / 2;
  const cos = new Float32Array(context * half);
  const sin = new Float32Array(context * half);
  for (let position = 0; position < context; position++) {
    for (let pair = 0; pair < half; pair++) {
      const angle = position * ropeTheta ** ((-2 * pair) / headSize);
      cos[position * half + pair] = Math.cos(angle);
      sin[position * half + pair] = Math.sin(angle);
    }
  }
  return [cos, sin];
}
