import { at } from '../../../../lib/at.ts';
import { isTransposedProduct } from '../../format/constants.ts';
import { attribute, DataType, type Graph, makeNode, type OnnxModel, type OnnxNode } from '../../format/model.ts';
import { prune } from '../../format/subgraph.ts';
import { readFloats } from '../../format/tensor-data.ts';
import type { GraphLayout } from '../../layout.ts';
import { unusable } from '../../unusable.ts';
import { constants } from '../gather-rows.ts';
import { pairOf } from './plain-attention.ts';

/** Fused operators that add their inputs before a normalization, each with the operator of the normalization alone. */
const SKIP_NORMS: Readonly<Record<string, string>> = {
  SkipSimplifiedLayerNormalization: 'SimplifiedLayerNormalization',
  SkipLayerNormalization: 'LayerNormalization',
};

/**
 * Replaces operators that a compiler for NPUs does not accept: a normalization fused with additions becomes one node
 * for each operation. Measured, see docs/devices.md ("Operators").
 */
export function commonOperators(graph: Graph): void {
  graph.nodes = graph.nodes.flatMap((node) => {
    if (SKIP_NORMS[node.op]) return separateSum(node);
    return isTransposedProduct(node) ? separateTranspose(node) : [node];
  });
}

/** Returns the two nodes that replace a product with a transposed matrix. */
function separateTranspose(node: OnnxNode): OnnxNode[] {
  const [x = '', matrix = ''] = node.inputs;
  const transposed = `${at(node.outputs, 0)}/transposed`;
  return [
    makeNode('Transpose', [matrix], [transposed], { perm: [1, 0] }),
    makeNode('MatMul', [x, transposed], node.outputs),
  ];
}

/**
 * Returns the addition and the normalization that together replace a fused node. Inputs of the node: input, skip,
 * gamma, beta or bias. Outputs: result, mean, inverse deviation, sum. Source: onnxruntime, docs/ContribOperators.md.
 */
function separateSum(node: OnnxNode): OnnxNode[] {
  const simplified = node.op === 'SkipSimplifiedLayerNormalization';
  // A cast: SkipLayerNormalization requires these inputs.
  const [input, skip, gamma] = node.inputs as [string, string, string];
  const beta = simplified ? undefined : node.inputs[3];
  const bias = node.inputs[simplified ? 3 : 4];
  const result = at(node.outputs, 0);
  const sum = node.outputs[3] || `${result}/sum`;
  const sums = bias
    ? [makeNode('Add', [input, bias], [`${result}/biased`]), makeNode('Add', [`${result}/biased`, skip], [sum])]
    : [makeNode('Add', [input, skip], [sum])];
  const norm = makeNode(SKIP_NORMS[node.op]!, [sum, gamma, ...(beta ? [beta] : [])], [result], { axis: -1 });
  const epsilon = node.attributes.get('epsilon');
  if (epsilon) norm.attributes.set('epsilon', epsilon);
  return [...sums, norm];
}

/** Operators that look up, scale and widen embeddings, before the layers compute anything. */
const LOOKUP = new Set(['Gather', 'GatherBlockQuantized', 'DequantizeLinear', 'Cast', 'Mul', 'Identity', 'Reshape']);

/**
 * Returns the nodes that derive values from the token ids by lookup alone, in the order of the graph, and the names of
 * these values.
 */
export function lookedUp(graph: Graph, tokens: string): { nodes: OnnxNode[]; values: Set<string> } {
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
  model: OnnxModel,
  nodes: readonly OnnxNode[],
  inputs: Graph['inputs'],
  outputs: Graph['outputs'],
): OnnxModel {
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

export interface RotaryTable {
  /** Name of the published table, which has a row for each position. */
  table: string;
  /** Name of the wide table made from it, with a column for each element of a head. */
  wide: string;
  /** Number of elements of a head. */
  width: number;
  /** Number of elements of a head that are rotated, starting with the first; the others are not. */
  rotated: number;
}

/**
 * Describes the tables of cosines and sines that the layers read, each once, and adds a wide form of each to the
 * graph's weights. A published table has one column for each pair of elements; the wide one has one for each element of
 * a head, with the angle 0 for elements that are not rotated. Throws `engine_failed` for tables that are chosen by the
 * length of the text (LongRoPE).
 */
export function rotaryTables(graph: Graph, layout: GraphLayout, attention: readonly OnnxNode[]): RotaryTable[] {
  const found = new Map<string, RotaryTable>();
  for (const [layer, node] of attention.entries()) {
    if (!attribute(node, 'do_rotary')) continue;
    const width = at(layout.kv, layer).headSize;
    for (const [part, table] of node.inputs.slice(7, 9).entries()) {
      const tensor = graph.initializers.get(table);
      const [rows, pairs] = tensor?.dims ?? [];
      if (!tensor || !rows || !pairs)
        throw unusable('its rotary tables depend on the length of the text (LongRoPE), which has no static form');
      const wide = `assay/rotary_table/${table}`;
      if (found.has(table)) continue;
      found.set(table, { table, wide, width, rotated: 2 * pairs });
      const unrotated = part === 0 ? 1 : 0;
      const interleaved = attribute(node, 'rotary_interleaved') === 1;
      graph.initializers.set(wide, {
        name: wide,
        dataType: DataType.float,
        dims: [rows, width],
        data: {
          length: rows * width * 4,
          *pieces() {
            const values = readFloats(tensor);
            const row = new Float32Array(width).fill(unrotated);
            for (let at = 0; at < rows; at++) {
              for (let pair = 0; pair < pairs; pair++) {
                const [first, second] = pairOf(pair, pairs, interleaved);
                row[first] = values[at * pairs + pair]!;
                row[second] = values[at * pairs + pair]!;
              }
              yield new Uint8Array(row.slice().buffer);
            }
          },
        },
      });
    }
  }
  return [...found.values()];
}

/** Returns the name of the value with a rotary table's rows at the positions of the new cells. */
export function rotaryRowsName(table: string): string {
  return `assay/rotary/${table}`;
}
