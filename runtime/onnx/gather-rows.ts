import type { Layout } from './layout.ts';
import { DataType, type Graph, type Model, makeNode, type Node } from './model.ts';

/**
 * What may stand between the head and the logits: a bias, a scale, soft capping, a change of type. Each keeps rows
 * apart.
 */
const ELEMENTWISE = ['Add', 'Sub', 'Mul', 'Div', 'Tanh', 'Cast', 'Identity'];
const PRODUCTS = ['MatMul', 'MatMulNBits', 'FusedMatMul'];
/** Each along the last axis. */
const NORMS = [
  'SimplifiedLayerNormalization',
  'LayerNormalization',
  'SkipSimplifiedLayerNormalization',
  'SkipLayerNormalization',
];
const ACTIVATIONS = ['Sigmoid', 'Gelu', 'FastGelu', 'QuickGelu', 'BiasGelu', 'Relu'];
/** What stands in the last layer behind its attention. */
const ROWWISE = new Set([...ELEMENTWISE, ...PRODUCTS, ...NORMS, ...ACTIVATIONS]);
/** Nodes whose outputs are surely `[batch, row, width]`, so that rows can be gathered from them. */
const STREAM = new Set(['GroupQueryAttention', 'Add', ...NORMS]);

/**
 * Puts a `Gather` of the wanted rows before the head, the largest matrix of small models, so that a prefill computes
 * one row of logits instead of all. With the `attention` nodes known it stands further up, behind the last of them:
 * what follows there keeps rows apart as well. Returns the new input's name; undefined where the head is not found, and
 * the graph stays as it is.
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
 * The head and the nodes before it, in their order, that compute nothing but what the head reads, row by row. Undefined
 * where they begin with something else than the stream of rows behind the last attention.
 */
function rowwiseTail(graph: Graph, head: Node, attention: ReadonlySet<Node>): Node[] | undefined {
  const constant = constants(graph);
  const consumers = new Map<string, Node[]>();
  for (const node of graph.nodes) {
    // an input or output that a node goes without has an empty name
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

/** The product with the head's weights, walking back from the logits. */
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
    name = changing[0]!;
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
    return node.op === 'Constant' || (['Transpose', 'Cast'].includes(node.op) && node.inputs.every(isConstant));
  };
}
