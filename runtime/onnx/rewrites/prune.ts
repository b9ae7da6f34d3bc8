import type { Graph } from '../format/model.ts';
import { valuesRead } from '../format/subgraph.ts';

/** Removes the nodes that no graph output depends on, and the initializers that are neither read nor graph outputs. */
export function prune(graph: Graph): void {
  const needed = new Set(graph.outputs.map((output) => output.name));
  const kept: typeof graph.nodes = [];
  for (const node of graph.nodes.toReversed()) {
    if (!node.outputs.some((output) => needed.has(output))) continue;
    kept.push(node);
    for (const input of valuesRead(node)) needed.add(input);
  }
  graph.nodes = kept.reverse();
  for (const name of graph.initializers.keys()) if (!needed.has(name)) graph.initializers.delete(name);
}
