import { at } from '../../../lib/at.ts';
import { EXACT, isTransposedProduct } from '../../onnx/format/constants.ts';
import {
  attribute,
  attributeFields,
  dataLength,
  type Graph,
  type MatrixBlocks,
  makeNode,
  makeTensor,
  type OnnxNode,
  type Tensor,
} from '../../onnx/format/model.ts';
import { valuesRead } from '../../onnx/format/subgraph.ts';
import { readPieces } from '../../onnx/format/tensor-data.ts';

/**
 * Computes products of 4 bits, and those with matrices that were published in blocks, as one if they read the same
 * value, and splits its result: queries, keys and values, gate and up. With one row, the weights are then read in one
 * sweep (docs/engine.md, "Measuring").
 */
export function stackProducts(graph: Graph): void {
  const uses = new Map<string, number>();
  for (const name of graph.nodes.flatMap(valuesRead)) uses.set(name, (uses.get(name) ?? 0) + 1);
  const stackable = graph.nodes.filter((node) => {
    const inBlocks = isTransposedProduct(node) && blocksIn(graph.initializers.get(at(node.inputs, 1)));
    if (!inBlocks && (node.op !== 'MatMulNBits' || attribute(node, 'bits') !== 4)) return false;
    // Inputs: activations, levels, scales, zero points; more are an order of the inputs, or a bias. Weights that other
    // nodes read too would be there twice.
    const [, ...weights] = node.inputs;
    return weights.length <= 3 && weights.every((name) => graph.initializers.has(name) && uses.get(name) === 1);
  });
  const made = new Map<OnnxNode, OnnxNode[]>();
  for (const products of Map.groupBy(stackable, (node) => kindOf(node, graph)).values()) {
    if (products.length < 2) continue;
    for (const product of products) made.set(product, []);
    made.set(at(products, 0), stacked(graph, products));
  }
  graph.nodes = graph.nodes.flatMap((node) => made.get(node) ?? [node]);
}

/** Returns the blocks in which a matrix was published; undefined if there are none, or it stays in floats. */
export function blocksIn(tensor: Tensor | undefined): MatrixBlocks | undefined {
  return tensor && !tensor.name.startsWith(EXACT) && 'pieces' in tensor.data ? tensor.data.blocks : undefined;
}

/** Returns what products that become one have in common: what they read, and all but the number of their outputs. */
function kindOf({ inputs, attributes }: OnnxNode, { initializers }: Graph): string {
  const [x, ...weights] = inputs;
  const forms = weights
    .map((name) => initializers.get(name))
    .map((one) => [one?.dataType, one?.dims.slice(1), blocksIn(one)]);
  const rest = [...attributes].filter(([name]) => name !== 'N').sort();
  return JSON.stringify([x, forms, rest]);
}

/** Returns the nodes that compute all products as one, and give each result its name. */
function stacked(graph: Graph, products: readonly OnnxNode[]): OnnxNode[] {
  const first = at(products, 0);
  const widths = products.map((node) => at(graph.initializers.get(at(node.inputs, 1))!.dims, 0));
  const result = `${at(first.outputs, 0)}/stacked`;
  const inputs = [...first.inputs];
  // Levels come last: packing a matrix frees it then.
  for (const index of [2, 3, 1].filter((one) => inputs[one])) {
    inputs[index] = join(
      graph,
      `${result}/${index}`,
      products.map((node) => at(node.inputs, index)),
    );
  }
  const attributes = new Map(first.attributes);
  if (attributes.has('N')) attributes.set('N', attributeFields('N', sum(widths)));
  const sizes = `assay/stacked_${widths.join('_')}`;
  graph.initializers.set(sizes, makeTensor(sizes, [widths.length], BigInt64Array.from(widths, BigInt)));
  const outputs = products.map((node) => at(node.outputs, 0));
  return [
    { ...first, name: `assay/${result}`, inputs, outputs: [result], attributes },
    makeNode('Split', [result, sizes], outputs, { axis: -1 }),
  ];
}

/** Adds a tensor of these ones after each other on their first axis, which are read one at a time. Returns its name. */
function join({ initializers }: Graph, name: string, names: readonly string[]): string {
  const parts = names.map((one) => initializers.get(one)!);
  const { dataType, dims } = at(parts, 0);
  const blocks = joinBlocks(parts);
  initializers.set(name, {
    name,
    dataType,
    dims: [sum(parts.map((part) => at(part.dims, 0))), ...dims.slice(1)],
    data: {
      length: sum(parts.map(({ data }) => dataLength(data))),
      *pieces() {
        for (const { data } of parts) yield* readPieces(data).pieces();
      },
      ...(blocks ? { blocks } : {}),
    },
  });
  return name;
}

/** Returns the blocks of matrices after each other; undefined if they were not published in blocks. */
function joinBlocks(parts: readonly Tensor[]): MatrixBlocks | undefined {
  const form = blocksIn(parts[0]);
  if (!form) return undefined;
  const read: MatrixBlocks['read'] = (first, count) => {
    const found: ReturnType<MatrixBlocks['read']>[] = [];
    let end = 0;
    for (const part of parts) {
      const [start, rows] = [end, at(part.dims, 0)];
      end += rows;
      const [from, to] = [Math.max(first, start), Math.min(first + count, end)];
      const blocks = blocksIn(part);
      if (blocks && from < to) found.push(blocks.read(from - start, to - from));
    }
    return {
      levels: Buffer.concat(found.map(({ levels }) => levels)),
      scales: floats(found.map(({ scales }) => scales)),
      mins: floats(found.map(({ mins }) => mins)),
    };
  };
  return { ...form, read };
}

function floats(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(sum(parts.map(({ length }) => length)));
  let start = 0;
  for (const part of parts) {
    all.set(part, start);
    start += part.length;
  }
  return all;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, one) => all + one);
}
