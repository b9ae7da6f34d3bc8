import { expect, test } from 'vitest';
import { attribute, type Graph, makeNode, makeTensor } from '../../onnx/format/model.ts';
import { readAll } from '../../onnx/format/tensor-data.ts';
import { stackProducts } from './stack.ts';

interface Product {
  /** Number of outputs. */
  N: number;
  x?: string;
  bits?: number;
  size?: number;
  /** Prefix of the names of the weights. */
  weights?: string;
  bias?: boolean;
  zeros?: boolean;
}

/** Returns a graph of products of 64 inputs, `y0` and so on, whose weights differ from each other. */
function graphOf(products: readonly Product[]): Graph {
  const graph: Graph = { nodes: [], initializers: new Map(), inputs: [], outputs: [], rest: [] };
  for (const [i, product] of products.entries()) {
    const { N, x = 'x', bits = 4, size = 32, weights = `w${i}`, bias = false, zeros = true } = product;
    const constant = (part: string, dims: number[], floats = false) => {
      const values = Uint8Array.from({ length: dims.reduce((a, b) => a * b) }, (_, at) => 100 * i + at);
      const name = `${weights}/${part}`;
      graph.initializers.set(name, makeTensor(name, dims, floats ? Float32Array.from(values) : values));
      return name;
    };
    const blocks = 64 / size;
    const inputs = [x, constant('levels', [N, blocks, (size * bits) / 8]), constant('scales', [N * blocks], true)];
    if (zeros) inputs.push(constant('zeros', [N * Math.ceil((blocks * bits) / 8)]));
    if (bias) inputs.push('', constant('bias', [N], true));
    const attributes = { K: 64, N, bits, block_size: size, accuracy_level: 4 };
    graph.nodes.push(makeNode('MatMulNBits', inputs, [`y${i}`], attributes, 'com.microsoft'));
  }
  return graph;
}

test.each([
  ['queries, keys and values', [4, 2, 2]],
  ['gate and up', [3, 3]],
])('%s are one product, whose result is split', (_, widths) => {
  const graph = graphOf(widths.map((N) => ({ N })));
  stackProducts(graph);
  expect(graph.nodes.map(({ op, inputs, outputs }) => [op, inputs[0], ...outputs])).toEqual([
    ['MatMulNBits', 'x', 'y0/stacked'],
    ['Split', 'y0/stacked', ...widths.map((_, i) => `y${i}`)],
  ]);
  expect(new Set(graph.nodes.map(({ name }) => name)).size).toBe(2);
  const all = widths.reduce((sum, N) => sum + N);
  const [product, split] = graph.nodes;
  expect(['K', 'N', 'bits', 'block_size', 'accuracy_level'].map((name) => attribute(product, name))).toEqual([
    ...[64, all, 4, 32, 4],
  ]);
  const tensor = (name = '') => graph.initializers.get(name)!;
  expect([...new BigInt64Array(readAll(tensor(split?.inputs[1])).buffer)].map(Number)).toEqual(widths);
  for (const [index, part, dims] of [
    [1, 'levels', [all, 2, 16]],
    [2, 'scales', [2 * all]],
    [3, 'zeros', [all]],
  ] as const) {
    const joined = tensor(product?.inputs[index]);
    expect(joined.dims).toEqual(dims);
    expect([...readAll(joined)]).toEqual(widths.flatMap((_, i) => [...readAll(tensor(`w${i}/${part}`))]));
  }
});

test.each<[string, Product[]]>([
  ['a single product', [{ N: 2 }]],
  ['products of other values', [{ N: 2 }, { N: 2, x: 'z' }]],
  [
    'products of 8 bits',
    [
      { N: 2, bits: 8 },
      { N: 2, bits: 8 },
    ],
  ],
  ['blocks of several sizes', [{ N: 2 }, { N: 2, size: 16 }]],
  ['zero points of one of them only', [{ N: 2 }, { N: 2, zeros: false }]],
  [
    'weights that several products read',
    [
      { N: 2, weights: 'w' },
      { N: 2, weights: 'w' },
    ],
  ],
  [
    'products with biases of their own',
    [
      { N: 2, bias: true },
      { N: 2, bias: true },
    ],
  ],
])('leaves %s as they are', (_, products) => {
  const [graph, before] = [graphOf(products), graphOf(products)];
  stackProducts(graph);
  expect(graph).toEqual(before);
});
