import { floatTensor, rowsOf, type StoredTensor, type WeightSource } from '../checkpoint/weight-source.ts';
import type { JointHead } from '../contracts/contract.ts';
import { DataType, type OnnxModel } from '../onnx/format/model.ts';
import { readFloats } from '../onnx/format/tensor-data.ts';
import { GraphBuilder } from './graph-builder.ts';
import { exactLinear } from './linear.ts';
import { EncoderWeights, layerNorm } from './modernbert.ts';

/** Epsilon of PyTorch's layer norm. */
const EPSILON = 1e-5;
/** Largest logarithm of a scale. */
const LONGEST = Math.log(100);
/** Added to the score of an option of another field, so that its share is 0. */
const UNSEEN = -1e30;

/**
 * Writes the graph of Clef's head, which answers all questions of a request together. Inputs: `states` of all tokens,
 * `lexical` rows of the output head of the options' tokens, for each field and option the weights of the tokens in its
 * mean, the `kinds` of the fields (0 for true or false, 1 for a choice, 2 for a score), and the field of each option
 * (`owners`). Output: the logits of all options. Throws `engine_failed` for a checkpoint that does not fit.
 */
export function buildJointHead(
  { hidden, width, routingLayers, layers, heads, inner: innerSize }: JointHead,
  source: WeightSource,
): OnnxModel {
  const graph = new GraphBuilder();
  const weights = new EncoderWeights(source);
  const input = (name: string, ...dims: [string, string | number]) => graph.input(name, DataType.float, dims);
  const indices = (name: string, dim: string) => graph.input(name, DataType.int64, [dim]);

  const states = norm(input('states', 'tokens', hidden), 'hidden_norm', hidden);
  const words = graph.add('MatMul', [
    input('lexical_mean', 'options', 'option_tokens'),
    input('lexical', 'option_tokens', hidden),
  ]);
  const questions = graph.add('MatMul', [input('question_mean', 'fields', 'tokens'), states]);
  const contexts = graph.add('MatMul', [input('option_mean', 'options', 'tokens'), states]);
  const [kinds, owners] = [indices('kinds', 'fields'), indices('owners', 'options')];
  const ofOwner = (x: string) => graph.add('Gather', [x, owners]);
  const last = graph.add('Gather', [states, graph.integers(-1)]);
  const row = (x: string) => graph.add('Unsqueeze', [x, graph.integers(0)]);
  const only = (x: string) => graph.add('Squeeze', [x, graph.integers(0)]);
  const memory = row(projected(states, 'memory_projection'));

  let routed = row(
    sum(
      projected(contexts, 'option_context_projection'),
      projected(words, 'option_lexical_projection'),
      ofOwner(projected(questions, 'option_question_projection')),
    ),
  );
  for (let layer = 0; layer < routingLayers; layer++) {
    const at = `evidence_layers.${layer}`;
    const seen = norm(memory, `${at}.memory_norm`);
    routed = sum(routed, attention(norm(routed, `${at}.query_norm`), seen, `${at}.attention`));
    routed = sum(routed, inner(norm(routed, `${at}.feedforward_norm`), `${at}.feedforward.0`, `${at}.feedforward.3`));
  }
  const options = only(routed);

  const base = projected(questions, 'question_projection');
  const types = graph.weight(weights.get('type_embedding.weight', 3, width));
  let fields = row(
    sum(
      base,
      norm(summaries(base), 'option_summary_norm'),
      projected(last, 'global_projection'),
      graph.add('Gather', [types, kinds]),
    ),
  );
  for (let layer = 0; layer < layers; layer++) {
    const at = `layers.${layer}`;
    const own = norm(fields, `${at}.norm1`);
    fields = sum(fields, attention(own, own, `${at}.self_attn`));
    fields = sum(fields, attention(norm(fields, `${at}.norm2`), memory, `${at}.multihead_attn`));
    fields = sum(fields, inner(norm(fields, `${at}.norm3`), `${at}.linear1`, `${at}.linear2`));
  }

  const field = ofOwner(norm(only(fields), 'field_norm'));
  const shown = norm(options, 'option_norm');
  const product = graph.add('Mul', [field, shown]);
  const apart = graph.add('Abs', [graph.add('Sub', [field, shown])]);
  const features = graph.add('Concat', [field, shown, product, apart], { axis: -1 });
  const scored = graph.contrib('Gelu', [dense(features, 'residual_scorer.0', width, 4 * width)]);
  const residual = graph.add('Squeeze', [dense(scored, 'residual_scorer.3', 1, width), graph.integers(-1)]);
  const joint = sum(graph.scaled(cosine(field, shown), scale('joint_logit_scale')), residual);
  const prior = graph.scaled(cosine(words, ofOwner(sum(questions, last))), scale('prior_logit_scale'));
  const gate = 1 / (1 + Math.exp(-number('residual_gate')));
  graph.output('logits', ['options'], sum(prior, graph.scaled(joint, Math.fround(gate))));
  weights.checkAllGiven(/^$/u);
  return graph.model('clef');

  function sum(...parts: readonly string[]): string {
    return parts.reduce((one, other) => graph.add('Add', [one, other]));
  }
  function norm(x: string, name: string, size = width): string {
    const [gain, bias] = ['weight', 'bias'].map((part) => weights.get(`${name}.${part}`, size));
    return layerNorm(graph, x, gain as StoredTensor, bias, EPSILON);
  }
  function projected(x: string, name: string): string {
    return exactLinear(graph, x, weights.get(`${name}.weight`, width, hidden));
  }
  function dense(x: string, name: string, outputs: number, inputs: number): string {
    return exactLinear(graph, x, weights.get(`${name}.weight`, outputs, inputs), weights.get(`${name}.bias`, outputs));
  }
  function inner(x: string, first: string, second: string): string {
    return dense(graph.contrib('Gelu', [dense(x, first, innerSize, width)]), second, width, innerSize);
  }
  /** Adds PyTorch's attention of `queries` to `seen`, whose three matrices are one tensor. */
  function attention(queries: string, seen: string, name: string): string {
    const matrix = weights.get(`${name}.in_proj_weight`, 3 * width, width);
    const bias = weights.get(`${name}.in_proj_bias`, 3 * width);
    const part = (stored: StoredTensor, index: number): StoredTensor => {
      const rows = Array.from({ length: width }, (_, i) => index * width + i);
      return { ...rowsOf(stored, rows), name: `${stored.name}/${index}` };
    };
    const parts = [queries, seen, seen].map((x, i) => exactLinear(graph, x, part(matrix, i), part(bias, i)));
    return dense(graph.contrib('MultiHeadAttention', parts, { num_heads: heads }), `${name}.out_proj`, width, width);
  }
  /** Returns the mean of each field's options, weighted by how well they fit its question. */
  function summaries(base: string): string {
    const count = graph.add('Gather', [graph.add('Shape', [kinds]), graph.integer(0)]);
    const numbers = graph.add('Range', [graph.integer(0), count, graph.integer(1)]);
    const own = graph.add('Equal', [row(owners), graph.add('Unsqueeze', [numbers, graph.integers(1)])]);
    const scores = graph.scaled(graph.contrib('FusedMatMul', [base, options], { transB: 1 }), width ** -0.5);
    const shares = graph.add('Softmax', [graph.add('Where', [own, scores, graph.float(UNSEEN)])], { axis: -1 });
    return graph.add('MatMul', [shares, options]);
  }
  /** Returns the cosine of each row of a matrix with the same row of another. */
  function cosine(one: string, other: string): string {
    const dot = (a: string, b: string) =>
      graph.add('ReduceSum', [graph.add('Mul', [a, b]), graph.integers(-1)], { keepdims: 0 });
    const lengths = graph.add('Mul', [dot(one, one), dot(other, other)]);
    return graph.add('Div', [dot(one, other), graph.add('Sqrt', [graph.add('Max', [lengths, graph.float(1e-24)])])]);
  }
  function number(name: string): number {
    return readFloats(floatTensor(weights.get(name)))[0] ?? 0;
  }
  function scale(name: string): number {
    return Math.fround(Math.exp(Math.min(number(name), LONGEST)));
  }
}
