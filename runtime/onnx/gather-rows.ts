import { at } from '../../lib/at.ts';
import type { Layout } from './layout.ts';
import { DataType, type Graph, type Model, makeNode, type Node } from './model.ts';

/** Operators that may follow the head: a bias, a scale, soft capping, a cast. Each computes row by row. */
const ELEMENTWISE = ['Add', 'Sub', 'Mul', 'Div', 'Tanh', 'Cast', 'Identity'];
const PRODUCTS = ['MatMul', 'MatMulNBits', 'FusedMatMul'];
/** Normalizations along the last axis. */
const NORMS = [
  'SimplifiedLayerNormalization',
  'LayerNormalization',
  'SkipSimplifiedLayerNormalization',
  'SkipLayerNormalization',
];
const ACTIVATIONS = ['Sigmoid', 'Gelu', 'FastGelu', 'QuickGelu', 'BiasGelu', 'Relu'];
/** Operators of the last layer after its attention. */
const ROWWISE = new Set([...ELEMENTWISE, ...PRODUCTS, ...NORMS, ...ACTIVATIONS]);
/** Operators whose outputs are `[batch, row, width]`, so that rows can be gathered from them. */
const STREAM = new Set(['GroupQueryAttention', 'Add', ...NORMS]);

/**
 * Adds a `Gather` of the needed rows before the head, the largest matrix of small models, so that a prefill computes
 * one row of logits instead of all. If the `attention` nodes are given, it is placed after the last of them, because
 * everything after that also computes row by row. Returns the name of the new input; undefined, with the graph
 * unchanged, when the head is not found.
 */
export function gatherRows(model: Model, layout: Layout, attention?: readonly Node[]): string | undefined {
  const { graph } = model;
  const head = findHead(graph, layout.logits);
  if (!head) return undefined;
  const rows = 'logit_rows';
  const readers = (attention && rowwiseTail(graph, head, new Set(attention))) ?? [head];
  const made = new Set(readers.flatMap((node) => node.outputs));
  const constant = constants(graph);
  for (const reader of readers) {
    reader.inputs = reader.inputs.map((input) => {
      if (!input || made.has(input) || constant(input)) return input;
      const gathered = `assay/read_rows/${input}`;
      if (!made.has(gathered)) {
        made.add(gathered);
        graph.nodes.splice(graph.nodes.indexOf(reader), 0, makeNode('Gather', [input, rows], [gathered], { axis: 1 }));
      }
      return gathered;
    });
  }
  graph.inputs.push({ name: rows, dataType: DataType.int64, dims: ['read_rows'] });
  const logits = graph.outputs.find((output) => output.name === layout.logits)!;
  logits.dims = [logits.dims[0] ?? 'batch_size', 'read_rows', layout.vocabSize];
  return rows;
}

/**
 * Returns the head and the nodes before it, in order, that compute only what the head reads, row by row. Undefined when
 * they begin with something other than the rows after the last attention.
 */
function rowwiseTail(graph: Graph, head: Node, attention: ReadonlySet<Node>): Node[] | undefined {
  const constant = constants(graph);
  const consumers = new Map<string, Node[]>();
  for (const node of graph.nodes) {
    // An omitted input or output has an empty name.
    for (const input of node.inputs.filter(Boolean)) consumers.set(input, [...(consumers.get(input) ?? []), node]);
  }
  const outputs = new Set(graph.outputs.map(({ name }) => name));
  const tail = new Set([head]);
  const boundary = new Set<Node>();
  for (const node of graph.nodes.slice(0, graph.nodes.indexOf(head)).reverse()) {
    const readers = node.outputs.flatMap((output) => consumers.get(output) ?? []);
    if (!readers.some((reader) => tail.has(reader)) || node.outputs.every(constant)) continue;
    const only = readers.every((reader) => tail.has(reader)) && !node.outputs.some((output) => outputs.has(output));
    if (only && ROWWISE.has(node.op)) tail.add(node);
    else boundary.add(node);
  }
  const fits = [...boundary].every((node) => STREAM.has(node.op)) && [...boundary].some((node) => attention.has(node));
  return fits ? graph.nodes.filter((node) => tail.has(node)) : undefined;
}

/** Finds the product with the head's weights, walking back from the logits. */
export function findHead(graph: Graph, logits: string): Node | undefined {
  const producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node])));
  const constant = constants(graph);
  let name = logits;
  for (let steps = 0; steps < 16; steps++) {
    const node = producers.get(name);
    if (!node) return undefined;
    if (PRODUCTS.includes(node.op))
      return node.inputs.slice(1).every((input) => !input || constant(input)) ? node : undefined;
    const changing = node.inputs.filter((input) => input && !constant(input));
    if (!ELEMENTWISE.includes(node.op) || changing.length !== 1) return undefined;
    name = at(changing, 0);
  }
  return undefined;
}

/** Tells whether a value is the same in every run. */
export function constants(graph: Graph): (name: string) => boolean {
  const producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node])));
  return function isConstant(name: string): boolean {
    if (graph.initializers.has(name)) return true;
    const node = producers.get(name);
    if (!node) return false;
    return (
      node.op === 'Constant' || (['Transpose', 'Cast', 'Reshape'].includes(node.op) && node.inputs.every(isConstant))
    );
  };
}
