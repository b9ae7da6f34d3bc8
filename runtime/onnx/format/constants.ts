import { attribute, type Graph, type OnnxNode, type Tensor } from './model.ts';

/** Begins the names of matrices that stay in floats in all precisions, because they are small and matter much. */
export const EXACT = 'exact/';

/** Describes a constant matrix that a node reads: the tensor, and whether the node reads it transposed. */
export interface ConstantMatrix {
  tensor: Tensor;
  transposed: boolean;
}

/**
 * Returns a function that finds the constant matrix with a given name, directly or through a `Transpose` node, as tied
 * embeddings use. It returns undefined if the value is not a constant matrix.
 */
export function constantMatrices(graph: Graph): (name: string) => ConstantMatrix | undefined {
  const producers = new Map<string, OnnxNode>(
    graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node])),
  );
  return (name) => {
    const direct = graph.initializers.get(name);
    if (direct) return direct.dims.length === 2 ? { tensor: direct, transposed: false } : undefined;
    const node = producers.get(name);
    const inner = graph.initializers.get(node?.inputs[0] ?? '');
    if (node?.op !== 'Transpose' || inner?.dims.length !== 2) return undefined;
    const order = attribute(node, 'perm');
    const swaps = order === undefined || (Array.isArray(order) && order[0] === 1 && order[1] === 0);
    return swaps ? { tensor: inner, transposed: true } : undefined;
  };
}

/** Tells whether a node is a FusedMatMul that computes `x · Wᵀ` and nothing else, as graphs of checkpoints have. */
export function isTransposedProduct(node: OnnxNode): boolean {
  const others = ['transA', 'transBatchA', 'transBatchB'].some((name) => attribute(node, name));
  return (
    node.op === 'FusedMatMul' && attribute(node, 'transB') === 1 && !others && (attribute(node, 'alpha') ?? 1) === 1
  );
}
