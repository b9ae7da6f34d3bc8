import type { Layout } from './layout.ts';
import { DataType, type Graph, type Model, makeNode, type Node } from './model.ts';

/** What may stand between the head and the logits: a bias, a scale, soft capping, a change of type. Each keeps rows apart. */
const ROWWISE = new Set(['Add', 'Sub', 'Mul', 'Div', 'Tanh', 'Cast', 'Identity']);
const PRODUCTS = new Set(['MatMul', 'MatMulNBits', 'FusedMatMul']);

/**
 * Puts a `Gather` of the wanted rows before the head, the largest matrix of small models, so that a prefill computes one row of
 * logits instead of all. Returns the new input's name; undefined where the head is not found, and the graph stays as it is.
 */
export function gatherRows(model: Model, layout: Layout): string | undefined {
  const { graph } = model;
  const head = findHead(graph, layout.logits);
  if (!head) return undefined;
  const rows = 'logit_rows';
  const gathered = 'assay/read_rows';
  graph.nodes.splice(
    graph.nodes.indexOf(head),
    0,
    makeNode('Gather', [head.inputs[0]!, rows], [gathered], { axis: 1 }),
  );
  head.inputs[0] = gathered;
  graph.inputs.push({ name: rows, dataType: DataType.int64, dims: ['read_rows'] });
  const logits = graph.outputs.find((output) => output.name === layout.logits)!;
  logits.dims = [logits.dims[0] ?? 'batch_size', 'read_rows', layout.vocabSize];
  return rows;
}

/** The product with the head's weights, walking back from the logits. */
export function findHead(graph: Graph, logits: string): Node | undefined {
  const producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node])));
  const isConstant = (name: string): boolean => {
    if (graph.initializers.has(name)) return true;
    const node = producers.get(name);
    if (!node) return false;
    return node.op === 'Constant' || (['Transpose', 'Cast'].includes(node.op) && node.inputs.every(isConstant));
  };
  let name = logits;
  for (let steps = 0; steps < 16; steps++) {
    const node = producers.get(name);
    if (!node) return undefined;
    if (PRODUCTS.has(node.op))
      return node.inputs.slice(1).every((input) => !input || isConstant(input)) ? node : undefined;
    const changing = node.inputs.filter((input) => input && !isConstant(input));
    if (!ROWWISE.has(node.op) || changing.length !== 1) return undefined;
    name = changing[0]!;
  }
  return undefined;
}
