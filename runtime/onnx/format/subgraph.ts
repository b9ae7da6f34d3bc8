import { decodeNode, encodeNode, encodeValueInfo, type Graph, type OnnxNode, type ValueInfo } from './model.ts';
import { bytesField, encodeFields, fieldsOf, varintField, wireText } from './wire.ts';

/** Holds a branch of an `If` node. Its nodes may read values of the graph around it. */
export interface Subgraph {
  nodes: OnnxNode[];
  /** Results, in the order of the node's outputs. Each must state its number of dimensions, for onnxruntime. */
  outputs: ValueInfo[];
}

/** Creates a node that runs one of two branches, which the boolean tensor `condition` chooses. */
export function makeIf(
  condition: string,
  outputs: string[],
  { whenTrue, whenFalse }: { whenTrue: Subgraph; whenFalse: Subgraph },
): OnnxNode {
  const attributes = Object.entries({ then_branch: whenTrue, else_branch: whenFalse }).map(
    // Field 6 of an attribute is its graph; field 20 its type: 5 for a graph.
    ([name, branch]) => [name, [bytesField(1, name), bytesField(6, encode(name, branch)), varintField(20, 5)]] as const,
  );
  const name = `assay/${outputs[0] ?? condition}`;
  return { name, op: 'If', domain: '', inputs: [condition], outputs, attributes: new Map(attributes), rest: [] };
}

/** Returns the names of the values that a node reads, including those that its subgraphs read (of If, Loop, Scan). */
export function valuesRead(node: OnnxNode): string[] {
  // Field 6 of an attribute is a graph, field 11 one of several.
  const graphs = [...node.attributes.values()].flat().filter(({ no }) => no === 6 || no === 11);
  return [...node.inputs, ...graphs.flatMap(({ bytes }) => valuesReadInGraph(bytes))];
}

/** Returns the names that the nodes of an encoded graph read, and those of its outputs. */
function valuesReadInGraph(graph: Uint8Array): string[] {
  return fieldsOf(graph).flatMap(({ no, bytes }) => {
    if (no === 1) return valuesRead(decodeNode(bytes));
    if (no !== 12) return [];
    const name = fieldsOf(bytes).find((field) => field.no === 1);
    return name ? [wireText(name.bytes)] : [];
  });
}

function encode(name: string, { nodes, outputs }: Subgraph): Uint8Array {
  return encodeFields([
    ...nodes.map((node) => bytesField(1, encodeNode(node))),
    bytesField(2, name),
    ...outputs.map((output) => bytesField(12, encodeValueInfo(output))),
  ]);
}

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
