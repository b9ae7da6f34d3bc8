import { constants } from '../gather-rows.ts';
import type { Graph, Model, Node } from '../model.ts';
import { prune } from '../prune.ts';

/** Operators by which embeddings are looked up, scaled and widened, before anything is computed. */
const LOOKUP = new Set(['Gather', 'GatherBlockQuantized', 'DequantizeLinear', 'Cast', 'Mul', 'Identity', 'Reshape']);

/**
 * The values that follow from the tokens by looking up alone, in the order of the graph; what is computed from them is
 * not among them.
 */
export function lookedUp(graph: Graph, tokens: string): { nodes: Node[]; values: Set<string> } {
  const values = new Set<string>();
  const isConstant = constants(graph);
  const nodes = graph.nodes.filter((node) => {
    const changing = node.inputs.filter((input) => input && !isConstant(input));
    const follows = changing.length > 0 && changing.every((input) => input === tokens || values.has(input));
    if (!LOOKUP.has(node.op) || !follows) return false;
    for (const output of node.outputs) values.add(output);
    return true;
  });
  return { nodes, values };
}

/**
 * A graph that computes `outputs` from `inputs`, with nothing that it does not need. Its initializers are shared with
 * the model.
 */
export function partOf(
  model: Model,
  nodes: readonly Node[],
  inputs: Graph['inputs'],
  outputs: Graph['outputs'],
): Model {
  const given = new Set(inputs.map(({ name }) => name));
  const graph: Graph = {
    nodes: nodes.filter((node) => !node.outputs.some((output) => given.has(output))),
    initializers: new Map(model.graph.initializers),
    inputs,
    outputs,
    rest: model.graph.rest,
  };
  prune(graph);
  return { ...model, graph };
}
