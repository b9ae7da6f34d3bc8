import { floatTensor } from '../checkpoint/weight-source.ts';
import type { BlockMatrix } from '../onnx/format/block-matrix.ts';
import type { NewAttribute } from '../onnx/format/model.ts';
import { readFloats, readSomeFloats } from '../onnx/format/tensor-data.ts';
import type { Architecture, Experts } from './architecture.ts';
import type { GraphBuilder } from './graph-builder.ts';
import { exactLinear } from './linear.ts';
import type { Weights } from './weights.ts';

/** Score of an expert that is not chosen; its share of the sum is 0. */
const NEVER = -1e30;
/** Added to the sum of the chosen scores before the division, by LFM2. */
const SUM_EPSILON = 1e-6;

interface ExpertParts {
  architecture: Architecture;
  /** Number of the layer. */
  layer: number;
  experts: Experts;
  weights: Weights;
}

/**
 * Adds a mixture of experts. Returns what it adds to the stream. onnxruntime's operator chooses the experts with the
 * largest scores and weighs them by the softmax of these, so other ways to weigh are scores and a factor of the result.
 */
export function mixture(graph: GraphBuilder, x: string, parts: ExpertParts): string {
  const { architecture, layer, experts, weights } = parts;
  const { hidden } = architecture;
  const { count, names, routing } = experts;
  const at = (name: string) => `layers.${layer}.${name}`;
  const router = weights.get(`${at(names.router)}.weight`, count, hidden);
  const routerBias = weights.optional(experts.biased, `${at(names.router)}.bias`, count);
  const logits = graph.add('Reshape', [exactLinear(graph, x, router, routerBias), graph.integers(-1, count)]);
  const { scores, factor } = routed(graph, logits, parts);
  const first = expertTensors(graph, parts, 'inputs');
  const second = expertTensors(graph, parts, 'outputs');
  const inputs = [x, scores, ...first.inputs, ...second.inputs];
  const [one, other] = [first.blocks, second.blocks];
  const result =
    one && other
      ? graph.contrib('QMoE', [...inputs, '', '', '', first.zeros ?? '', second.zeros ?? ''], {
          ...{ ...operatorAttributes(experts), expert_weight_bits: one.bits },
          // Without it, a row has one scale.
          ...(one.scales.dims.length === 3 ? { block_size: Math.max(one.size, other.size) } : {}),
        })
      : graph.contrib('MoE', inputs, operatorAttributes(experts));
  if (factor === null) return routing.scale === 1 ? result : graph.scaled(result, routing.scale);
  const like = graph.add('Concat', [graph.add('Shape', [x], { end: -1 }), graph.integers(1)], { axis: 0 });
  return graph.add('Mul', [result, graph.add('Reshape', [factor, like])]);
}

/** Returns the attributes of onnxruntime's operators, MoE and QMoE, that say what experts compute. */
export function operatorAttributes({ used, form }: Experts): Record<string, NewAttribute> {
  return {
    ...{ k: used, activation_type: 'swiglu', swiglu_fusion: 1, normalize_routing_weights: 1 },
    ...{ activation_alpha: { float: form?.alpha ?? 1 }, activation_beta: { float: form ? 1 : 0 } },
    ...(form ? { swiglu_limit: { float: form.limit } } : {}),
  };
}

/** Adds the scores by which the operator chooses and weighs, and the factor of its result; null: `routing.scale`. */
function routed(
  graph: GraphBuilder,
  logits: string,
  { layer, experts, weights }: ExpertParts,
): { scores: string; factor: string | null } {
  const { count, used, routing } = experts;
  const best = (values: string) => {
    const outputs = [graph.name(), graph.name()];
    graph.nodes('TopK', [values, graph.integers(used)], outputs, { axis: -1 });
    return outputs as [values: string, indices: string];
  };
  const sum = (values: string) => graph.add('ReduceSum', [values, graph.integers(-1)], { keepdims: 1 });
  if (routing.kind === 'softmax') {
    if (routing.normalised) return { scores: logits, factor: null };
    const [chosen] = best(graph.add('Softmax', [logits], { axis: -1 }));
    return { scores: logits, factor: graph.scaled(sum(chosen), routing.scale) };
  }
  const shares = graph.add('Max', [graph.add('Sigmoid', [logits]), graph.float(1e-30)]);
  const ranked = routing.bias
    ? graph.add('Add', [shares, graph.weight(weights.get(`layers.${layer}.${routing.bias}`, count))])
    : shares;
  const [largest, indices] = best(ranked);
  const least = graph.add('ReduceMin', [largest, graph.integers(-1)], { keepdims: 1 });
  const isLeft = graph.add('Less', [ranked, least]);
  const scores = graph.add('Where', [isLeft, graph.float(NEVER), graph.add('Log', [shares])]);
  const total = sum(graph.add('GatherElements', [shares, indices], { axis: 1 }));
  const share = routing.normalised
    ? graph.add('Div', [total, graph.add('Add', [total, graph.float(SUM_EPSILON)])])
    : total;
  return { scores, factor: graph.scaled(share, routing.scale) };
}

/**
 * Adds the matrices of all experts, `[experts, outputs, inputs]`, and their biases. Rows of gate and up alternate.
 * Returns the operator's inputs for them; matrices that are published in blocks have levels, scales and zero points.
 */
function expertTensors(
  graph: GraphBuilder,
  { architecture, layer, experts, weights }: ExpertParts,
  side: 'inputs' | 'outputs',
): { inputs: string[]; zeros?: string | undefined; blocks?: BlockMatrix } {
  const { hidden } = architecture;
  const { count, inner, names, biased, layout } = experts;
  const at = (name: string) => `layers.${layer}.${name}`;
  const [rows, columns] = side === 'inputs' ? [2 * inner, hidden] : [hidden, inner];
  const name = side === 'inputs' ? names.gateUp : names.down;
  const bias = biased ? graph.weight(weights.get(`${at(name)}_bias`, count, rows)) : '';
  const dims = layout === 'transposed' ? [count, columns, rows] : [count, rows, columns];
  const stacked = weights.has(at(name)) ? weights.get(at(name), ...dims) : undefined;
  if (stacked && layout === 'operator') {
    const { published } = stacked;
    if (!published || !('blocks' in published)) return { inputs: [graph.weight(stacked), bias] };
    const { levels, scales, zeros } = published.blocks;
    const inputs = [graph.tensor(levels), graph.tensor(scales), bias];
    return { inputs, zeros: zeros && graph.tensor(zeros), blocks: published.blocks };
  }
  const single = (expert: number, path: string, ...shape: number[]) =>
    weights.get(`${at(names.single)}.${expert}.${path}.weight`, ...shape);
  // Found now, so that a weight that is missing is reported before anything is written.
  const parts = Array.from({ length: count }, (_, expert): (() => Float32Array) => {
    if (stacked) {
      const size = rows * columns;
      const whole = () => readSomeFloats(floatTensor(stacked), expert * size, size);
      if (layout === 'transposed') return () => transposedTo(whole(), columns, rows);
      return side === 'inputs' ? () => alternated(whole()) : whole;
    }
    if (side === 'outputs') {
      const own = single(expert, names.singleDown, hidden, inner);
      return () => readFloats(floatTensor(own));
    }
    const [gate, up] = [single(expert, names.singleGate, inner, hidden), single(expert, names.singleUp, inner, hidden)];
    return () => {
      const both = new Float32Array(2 * inner * hidden);
      both.set(readFloats(floatTensor(gate)));
      both.set(readFloats(floatTensor(up)), inner * hidden);
      return alternated(both);
    };
  });
  const alternated = (both: Float32Array) => {
    const result = new Float32Array(both.length);
    for (let row = 0; row < rows; row++) {
      const from = (row % 2 === 0 ? row / 2 : inner + (row - 1) / 2) * columns;
      result.set(both.subarray(from, from + columns), row * columns);
    }
    return result;
  };
  const matrix = graph.computed(`${at(name)}/experts`, [count, rows, columns], function* () {
    for (const part of parts) yield part();
  });
  return { inputs: [matrix, bias] };
}

function transposedTo(values: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) result[column * rows + row] = values[row * columns + column] ?? 0;
  }
  return result;
}
