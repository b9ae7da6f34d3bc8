import type { Graph } from './model.ts';

/** Removes nodes that no output needs, and weights that no node reads. Leaves a graph with subgraphs unchanged. */
export function prune(graph: Graph): void {
  const needed = new Set(graph.outputs.map((output) => output.name));
  const kept: typeof graph.nodes = [];
  for (const node of graph.nodes.toReversed()) {
    if (!node.outputs.some((output) => needed.has(output))) continue;
    kept.push(node);
    for (const input of node.inputs) needed.add(input);
    // Subgraphs (If, Loop) read values of the outer graph without listing them as inputs, so what they need is unknown.
    if ([...node.attributes.values()].some((attribute) => attribute.some((field) => field.no === 6))) return;
  }
  graph.nodes = kept.reverse();
  for (const name of graph.initializers.keys()) if (!needed.has(name)) graph.initializers.delete(name);
}
