import { at } from '../../../lib/at.ts';
import {
  attribute,
  attributeFields,
  dataLength,
  type Graph,
  makeNode,
  makeTensor,
  type OnnxNode,
} from '../../onnx/format/model.ts';
import { valuesRead } from '../../onnx/format/subgraph.ts';
import { readPieces } from '../../onnx/format/tensor-data.ts';

/**
 * Computes products of 4 bits that read the same value as one, whose result is split: queries, keys and values, gate
 * and up. With one row, the weights are then read in one sweep (docs/engine.md, "Measuring").
 */
export function stackProducts(graph: Graph): void {
  const uses = new Map<string, number>();
  for (const name of graph.nodes.flatMap(valuesRead)) uses.set(name, (uses.get(name) ?? 0) + 1);
  const stackable = graph.nodes.filter((node) => {
    if (node.op !== 'MatMulNBits' || attribute(node, 'bits') !== 4) return false;
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

/** Returns what products that become one have in common: what they read, and all but the number of their outputs. */
function kindOf({ inputs, attributes }: OnnxNode, { initializers }: Graph): string {
  const [x, ...weights] = inputs;
  const forms = weights.map((name) => initializers.get(name)).map((one) => [one?.dataType, one?.dims.slice(1)]);
  const rest = [...attributes].filter(([name]) => name !== 'N').sort();
  return JSON.stringify([x, forms, rest]);
}

/** Returns the nodes that compute all products as one, and give each result its name. */
function stacked(graph: Graph, products: readonly OnnxNode[]): OnnxNode[] {
  const first = at(products, 0);
  const widths = products.map((node) => Number(attribute(node, 'N')));
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
  const attributes = new Map([...first.attributes, ['N', attributeFields('N', sum(widths))]]);
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
  initializers.set(name, {
    name,
    dataType,
    dims: [sum(parts.map((part) => at(part.dims, 0))), ...dims.slice(1)],
    data: {
      length: sum(parts.map(({ data }) => dataLength(data))),
      *pieces() {
        for (const { data } of parts) yield* readPieces(data).pieces();
      },
    },
  });
  return name;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, one) => all + one);
}
