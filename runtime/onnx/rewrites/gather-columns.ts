import { at } from '../../../lib/at.ts';
import { constantMatrices } from '../format/constants.ts';
import { attribute, type Graph, makeNode } from '../format/model.ts';

/**
 * Replaces the lookup of tied embeddings by one that gathers columns of the matrix of the output head. The
 * onnxruntime-genai builder gathers rows of `Transpose(matrix)`, a copy that onnxruntime would compute at load and keep
 * in memory.
 */
export function gatherColumns(graph: Graph): void {
  const constant = constantMatrices(graph);
  graph.nodes = graph.nodes.flatMap((node) => {
    const [table, rows] = node.inputs;
    const found = node.op === 'Gather' && (attribute(node, 'axis') ?? 0) === 0 ? constant(table ?? '') : undefined;
    const ids = graph.inputs.find(({ name }) => name === rows);
    if (!found?.transposed || ids?.dims.length !== 2) return [node];
    const columns = `assay/${at(node.outputs, 0)}/columns`;
    return [
      makeNode('Gather', [found.tensor.name, ids.name], [columns], { axis: 1 }),
      makeNode('Transpose', [columns], node.outputs, { perm: [1, 2, 0] }),
    ];
  });
}
