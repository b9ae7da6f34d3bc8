import { at } from '../../../lib/at.ts';
import { DataType, type Graph, makeNode, type OnnxModel, type OnnxNode } from '../format/model.ts';
import type { GraphLayout } from '../layout.ts';

/** Operators that may follow the head's MatMul: a bias, a scale, soft capping, a cast. Each computes row by row. */
const ELEMENTWISE = ['Add', 'Sub', 'Mul', 'Div', 'Tanh', 'Cast', 'Identity'];
const PRODUCTS = ['MatMul', 'MatMulNBits', 'FusedMatMul'];
/** Normalization operators, which work along the last axis. */
const NORMS = [
  'SimplifiedLayerNormalization',
  'LayerNormalization',
  'SkipSimplifiedLayerNormalization',
  'SkipLayerNormalization',
];
const ACTIVATIONS = ['Sigmoid', 'Gelu', 'FastGelu', 'QuickGelu', 'BiasGelu', 'Relu'];
/** Operators that may occur between the last attention and the head. Each computes row by row. */
const ROWWISE = new Set([...ELEMENTWISE, ...PRODUCTS, ...NORMS, ...ACTIVATIONS]);
/** Operators with outputs of shape `[batch, row, width]`, from which rows can be gathered. */
const STREAM = new Set(['GroupQueryAttention', 'Add', ...NORMS]);

/**
 * Adds a `Gather` of the requested rows before the output head, the largest matrix of small models, so that a prefill
 * computes one row of logits instead of all. If `attention` lists the attention nodes, the `Gather` is placed after the
 * last of them, because everything after it also computes row by row. Returns the name of the new input of row numbers.
 * Returns undefined and leaves the graph unchanged if the head is not found.
 */
export function gatherRows(model: OnnxModel, layout: GraphLayout, attention?: readonly OnnxNode[]): string | undefined {
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
 * Returns the head and, in order, the nodes before it that compute row by row and only for the head. Returns undefined
 * if their inputs do not all have one row per token, or do not come from the last attention.
 */
function rowwiseTail(graph: Graph, head: OnnxNode, attention: ReadonlySet<OnnxNode>): OnnxNode[] | undefined {
  const constant = constants(graph);
  const consumers = new Map<string, OnnxNode[]>();
  for (const node of graph.nodes) {
    // An omitted input has an empty name.
    for (const input of node.inputs.filter(Boolean)) consumers.set(input, [...(consumers.get(input) ?? []), node]);
  }
  const outputs = new Set(graph.outputs.map(({ name }) => name));
  const tail = new Set([head]);
  const boundary = new Set<OnnxNode>();
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

/** Returns the MatMul of the output head, found by walking back from the logits; undefined if there is none. */
export function findHead(graph: Graph, logits: string): OnnxNode | undefined {
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

/** Returns a function that tells whether the value with a given name is constant, the same in every run. */
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
