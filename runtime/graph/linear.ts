import type { StoredTensor } from '../checkpoint/weight-source.ts';
import { floatTensor } from '../checkpoint/weight-source.ts';
import { EXACT } from '../onnx/format/constants.ts';
import { readFloats } from '../onnx/format/tensor-data.ts';
import type { GraphBuilder } from './graph-builder.ts';

/** Adds `x · Wᵀ + bias` for a matrix `[outputs, inputs]`, which stays as the checkpoint has it. */
export function linear(graph: GraphBuilder, x: string, weight: StoredTensor, bias?: StoredTensor): string {
  return product(graph, x, graph.weight(weight), bias);
}

/** Adds the same for a small matrix whose numbers matter more than its size: it stays in floats in all weight forms. */
export function exactLinear(graph: GraphBuilder, x: string, weight: StoredTensor, bias?: StoredTensor): string {
  return product(graph, x, graph.weight(weight, EXACT), bias);
}

function product(graph: GraphBuilder, x: string, matrix: string, bias: StoredTensor | undefined): string {
  const result = graph.contrib('FusedMatMul', [x, matrix], { transB: 1 });
  return bias ? graph.add('Add', [result, graph.weight(bias)]) : result;
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
