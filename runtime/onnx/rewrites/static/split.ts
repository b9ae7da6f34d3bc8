import type { Graph, Model, Node } from '../../format/model.ts';
import { constants } from '../gather-rows.ts';
import { prune } from '../prune.ts';

/** Operators that look up, scale and widen embeddings, before the layers compute anything. */
const LOOKUP = new Set(['Gather', 'GatherBlockQuantized', 'DequantizeLinear', 'Cast', 'Mul', 'Identity', 'Reshape']);

/**
 * Returns the nodes that derive values from the token ids by lookup alone, in the order of the graph, and the names of
 * these values.
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
 * Returns the part of a graph that computes `outputs` from `inputs`. It shares the weights with the model.
 *
 * @param nodes nodes to choose from, in the order of the graph
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
