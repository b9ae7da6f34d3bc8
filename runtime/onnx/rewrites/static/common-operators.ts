import { at } from '../../../../lib/at.ts';
import { isTransposedProduct } from '../../format/constants.ts';
import { type Graph, makeNode, type Node } from '../../format/model.ts';

/** Fused operators that add their inputs before a normalization, each with the operator of the normalization alone. */
const SKIP_NORMS: Readonly<Record<string, string>> = {
  SkipSimplifiedLayerNormalization: 'SimplifiedLayerNormalization',
  SkipLayerNormalization: 'LayerNormalization',
};

/**
 * Replaces operators that a compiler for NPUs does not accept: a normalization fused with additions becomes one node
 * for each operation. Measured, see docs/devices.md ("Operators").
 */
export function commonOperators(graph: Graph): void {
  graph.nodes = graph.nodes.flatMap((node) => {
    if (SKIP_NORMS[node.op]) return separateSum(node);
    return isTransposedProduct(node) ? separateTranspose(node) : [node];
  });
}

/** Returns the two nodes that replace a product with a transposed matrix. */
function separateTranspose(node: Node): Node[] {
  const [x = '', matrix = ''] = node.inputs;
  const transposed = `${at(node.outputs, 0)}/transposed`;
  return [
    makeNode('Transpose', [matrix], [transposed], { perm: [1, 0] }),
    makeNode('MatMul', [x, transposed], node.outputs),
  ];
}

/**
 * Returns the addition and the normalization that together replace a fused node. Inputs of the node: input, skip,
 * gamma, beta or bias. Outputs: result, mean, inverse deviation, sum. Source: onnxruntime, docs/ContribOperators.md.
 */
function separateSum(node: Node): Node[] {
  const simplified = node.op === 'SkipSimplifiedLayerNormalization';
  // A cast: SkipLayerNormalization requires these inputs.
  const [input, skip, gamma] = node.inputs as [string, string, string];
  const beta = simplified ? undefined : node.inputs[3];
  const bias = node.inputs[simplified ? 3 : 4];
  const result = at(node.outputs, 0);
  const sum = node.outputs[3] || `${result}/sum`;
  const sums = bias
    ? [makeNode('Add', [input, bias], [`${result}/biased`]), makeNode('Add', [`${result}/biased`, skip], [sum])]
    : [makeNode('Add', [input, skip], [sum])];
  const norm = makeNode(SKIP_NORMS[node.op]!, [sum, gamma, ...(beta ? [beta] : [])], [result], { axis: -1 });
  const epsilon = node.attributes.get('epsilon');
  if (epsilon) norm.attributes.set('epsilon', epsilon);
  return [...sums, norm];
}
