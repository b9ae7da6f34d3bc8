import { expect, test } from 'vitest';
import { at } from '../../../lib/at.ts';
import { EXACT } from '../../onnx/format/constants.ts';
import { attribute, type Graph, makeNode, makeTensor } from '../../onnx/format/model.ts';
import { readAll } from '../../onnx/format/tensor-data.ts';
import { blocksIn, stackProducts } from './stack.ts';

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

/** Returns a graph of products of 64 inputs with matrices of as many rows, `w0` and so on. */
function publishedGraph(matrices: readonly { rows: number; bits?: 4 | 8; name?: string; blocks?: false }[]): Graph {
  const graph: Graph = { nodes: [], initializers: new Map(), inputs: [], outputs: [], rest: [] };
  for (const [i, { rows, bits = 4, name = `w${i}`, blocks }] of matrices.entries()) {
    const read = (first: number, count: number) => ({
      levels: Uint8Array.from({ length: count * 64 }, (_, place) => 16 * i + first + Math.floor(place / 64)),
      scales: Float32Array.from({ length: count * 2 }, (_, place) => 100 * i + 2 * first + place),
      mins: Float32Array.from({ length: count * 2 }, (_, place) => -100 * i - 2 * first - place),
    });
    const data = {
      length: rows * 64 * 4,
      pieces: () => [new Uint8Array(new Float32Array(rows * 64).fill(i).buffer)],
      ...(blocks ?? { blocks: { bits, size: 32, zero: 0, min: true, read } }),
    };
    graph.initializers.set(name, { name, dataType: 1, dims: [rows, 64], data });
    graph.nodes.push(makeNode('FusedMatMul', ['x', name], [`y${i}`], { transB: 1 }, 'com.microsoft'));
  }
  return graph;
}

test('products with matrices published in blocks are one with all their rows', () => {
  const rows = [4, 2, 3];
  const graph = publishedGraph(rows.map((count) => ({ rows: count })));
  const parts = rows.map((count, i) => blocksIn(graph.initializers.get(`w${i}`))!.read(0, count));
  stackProducts(graph);
  expect(graph.nodes.map(({ op, inputs, outputs }) => [op, inputs[0], ...outputs])).toEqual([
    ['FusedMatMul', 'x', 'y0/stacked'],
    ['Split', 'y0/stacked', 'y0', 'y1', 'y2'],
  ]);
  expect(attribute(graph.nodes[0], 'N')).toBeUndefined();
  const matrix = graph.initializers.get(at(graph.nodes[0]?.inputs ?? [], 1))!;
  expect(matrix.dims).toEqual([9, 64]);
  expect([...new Float32Array(readAll(matrix).buffer)]).toEqual(rows.flatMap((n, i) => Array(n * 64).fill(i)));
  const blocks = blocksIn(matrix)!;
  for (const [first, count] of [
    [0, 9],
    [3, 4],
    [6, 1],
  ] as const) {
    const found = blocks.read(first, count);
    for (const [part, width] of [
      ['levels', 64],
      ['scales', 2],
      ['mins', 2],
    ] as const) {
      const all = parts.flatMap((one) => [...one[part]]);
      expect([...found[part]]).toEqual(all.slice(first * width, (first + count) * width));
    }
  }
});

test.each([
  ['blocks of several forms', [{ rows: 2 }, { rows: 2, bits: 8 as const }]],
  [
    'matrices in floats',
    [
      { rows: 2, blocks: false as const },
      { rows: 2, blocks: false as const },
    ],
  ],
  [
    'matrices that stay in floats',
    [
      { rows: 2, name: `${EXACT}a` },
      { rows: 2, name: `${EXACT}b` },
    ],
  ],
  [
    'a matrix of several products',
    [
      { rows: 2, name: 'w' },
      { rows: 2, name: 'w' },
    ],
  ],
])('leaves products with %s as they are', (_, matrices) => {
  const graph = publishedGraph(matrices);
  const before = [...graph.nodes];
  stackProducts(graph);
  expect(graph.nodes).toEqual(before);
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
