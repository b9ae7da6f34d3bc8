import type { PublishedMatrix, StoredTensor } from '../checkpoint/weight-source.ts';
import { floatTensor } from '../checkpoint/weight-source.ts';
import { EXACT } from '../onnx/format/constants.ts';
import type { Tensor } from '../onnx/format/model.ts';
import { readFloats } from '../onnx/format/tensor-data.ts';
import type { GraphBuilder } from './graph-builder.ts';

/** Adds `x · Wᵀ + bias` for a matrix `[outputs, inputs]`, which stays as the checkpoint has it. */
export function linear(graph: GraphBuilder, x: string, weight: StoredTensor, bias?: StoredTensor): string {
  const { published } = weight;
  if (!published) return product(graph, x, graph.weight(weight), bias);
  return biased(graph, publishedProduct(graph, x, published), bias);
}

/** Adds the same for a small matrix whose numbers matter more than its size: it stays in floats in all precisions. */
export function exactLinear(graph: GraphBuilder, x: string, weight: StoredTensor, bias?: StoredTensor): string {
  return product(graph, x, graph.weight(weight, EXACT), bias);
}

function product(graph: GraphBuilder, x: string, matrix: string, bias: StoredTensor | undefined): string {
  const result = graph.cuts
    ? graph.add('MatMul', [x, graph.add('Transpose', [matrix], { perm: [1, 0] })])
    : graph.contrib('FusedMatMul', [x, matrix], { transB: 1 });
  return biased(graph, result, bias);
}

function biased(graph: GraphBuilder, result: string, bias: StoredTensor | undefined): string {
  return bias ? graph.add('Add', [result, graph.weight(bias)]) : result;
}

function publishedProduct(graph: GraphBuilder, x: string, published: PublishedMatrix): string {
  if ('inputsFirst' in published) return graph.add('MatMul', [x, graph.tensor(published.inputsFirst)]);
  const { blocks, accuracy } = published;
  const { rows, columns, bits, size, levels, scales, zeros } = blocks;
  const count = Math.ceil(columns / size);
  const shaped = shapedAs(graph, levels, [rows, count, (size * bits) / 8]);
  const inputs = [x, shaped, graph.tensor(scales), ...(zeros ? [graph.tensor(zeros)] : [])];
  const level = accuracy === undefined ? {} : { accuracy_level: accuracy };
  return graph.contrib('MatMulNBits', inputs, { K: columns, N: rows, bits, block_size: size, ...level });
}

/** Looks the rows of a matrix up by their numbers. */
export function lookup(graph: GraphBuilder, weight: StoredTensor, ids: string): string {
  const { published } = weight;
  if (!published) return graph.add('Gather', [graph.weight(weight), ids]);
  if ('inputsFirst' in published) {
    const rows = graph.add('Transpose', [graph.tensor(published.inputsFirst)], { perm: [1, 0] });
    return graph.add('Gather', [rows, ids]);
  }
  const { rows, columns, bits, size, levels, scales, zeros } = published.blocks;
  const count = columns / size;
  const inputs = [
    shapedAs(graph, levels, [rows, (columns * bits) / 8]),
    ids,
    shapedAs(graph, scales, [rows, count]),
    ...(zeros ? [shapedAs(graph, zeros, [rows, Math.ceil((count * bits) / 8)])] : []),
  ];
  return graph.contrib('GatherBlockQuantized', inputs, { bits, block_size: size, gather_axis: 0, quantize_axis: 1 });
}

/** Returns a tensor with these dimensions, whose elements products and lookups share. */
function shapedAs(graph: GraphBuilder, tensor: Tensor, dims: readonly number[]): string {
  const name = graph.tensor(tensor);
  return tensor.dims.join() === dims.join() ? name : graph.add('Reshape', [name, graph.integers(...dims)]);
}

/** Describes the norms of a model: what is added to the mean square, and to each weight. */
export interface NormForm {
  epsilon: number;
  normOffset: 0 | 1;
}

/** Adds the root-mean-square norm of the last axis. */
export function rmsNorm(graph: GraphBuilder, x: string, weight: StoredTensor, form: NormForm): string {
  return graph.add('SimplifiedLayerNormalization', [x, normWeight(graph, weight, form)], {
    axis: -1,
    epsilon: { float: form.epsilon },
    stash_type: 1,
  });
}

/** Adds `x + skip` and the norm of the sum. */
export function skipNorm(
  graph: GraphBuilder,
  [x, skip]: readonly [string, string],
  weight: StoredTensor,
  form: NormForm,
): { normed: string; sum: string } {
  if (graph.cuts) {
    const both = graph.add('Add', [x, skip]);
    return { normed: rmsNorm(graph, both, weight, form), sum: both };
  }
  const [normed, sum] = [graph.name(), graph.name()];
  const inputs = [x, skip, normWeight(graph, weight, form)];
  const epsilon = { float: form.epsilon };
  graph.contrib('SkipSimplifiedLayerNormalization', inputs, { epsilon }, [normed, '', '', sum]);
  return { normed, sum };
}

function normWeight(graph: GraphBuilder, weight: StoredTensor, { normOffset }: NormForm): string {
  if (normOffset === 0) return graph.weight(weight);
  return graph.computed(`${weight.name}/plus_one`, weight.dims, () => [
    readFloats(floatTensor(weight)).map((value) => value + 1),
  ]);
}
