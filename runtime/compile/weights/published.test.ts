import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BLOCK_TYPES } from '../../checkpoint/gguf/blocks.ts';
import { readGguf } from '../../checkpoint/gguf/read-gguf.ts';
import { floatsOf } from '../../engine/forward/forward.ts';
import { GraphBuilder } from '../../graph/graph-builder.ts';
import { linear } from '../../graph/linear.ts';
import { DataType, type OnnxModel } from '../../onnx/format/model.ts';
import { prune } from '../../onnx/format/subgraph.ts';
import { plannedGraphs } from '../planned-graphs.ts';
import { convertWeights, floatProducts } from '../weight-conversion.ts';

const FILE = join(import.meta.dirname, '../../../tests/fixtures/gguf/types.gguf');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'assay-published-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const { tensors } = readGguf(FILE);

/** Returns a graph that looks rows of the first matrix up, and multiplies other ones by each matrix. */
function modelOf(...types: string[]): { model: OnnxModel; width: number } {
  const [first, ...others] = types.map((type) => {
    const stored = tensors.get(type);
    if (!stored) throw new Error(`the fixture has ${type}`);
    return stored;
  });
  if (!first) throw new Error('a matrix is multiplied');
  const graph = new GraphBuilder();
  const ids = graph.input('ids', DataType.int64, [1, 'rows']);
  const x = graph.input('x', DataType.float, [1, 'rows', first.dims[1] ?? 0]);
  graph.output('found', [1, 'rows', null], graph.add('Gather', [graph.weight(first), ids]));
  graph.output('product', [1, 'rows', null], linear(graph, x, first));
  for (const [i, other] of others.entries()) graph.output(`product${i}`, [1, 'rows', null], linear(graph, x, other));
  return { model: graph.model('types'), width: first.dims[1] ?? 0 };
}

async function run({ model, width }: { model: OnnxModel; width: number }) {
  const own = mkdtempSync(join(folder, 'graph-'));
  await plannedGraphs([{ file: 'model.onnx', model }], 'weights.bin').write(own, () => {}, undefined);
  const session = await InferenceSession.create(join(own, 'model.onnx'), { executionProviders: ['cpu'] });
  const values = Float32Array.from({ length: 2 * width }, (_, i) => Math.sin(i * 1.7) + (i % 5 === 0 ? 2 : 0));
  const results = await session.run({
    ids: new Tensor('int64', BigInt64Array.of(0n, 0n), [1, 2]),
    x: new Tensor('float32', values, [1, 2, width]),
  });
  const names = session.outputNames;
  await session.release();
  return names.map((name) => [...floatsOf(results, name)]);
}

test.each(Object.keys(BLOCK_TYPES))(
  '%s: lookups and products with its blocks are those with its floats',
  async (type) => {
    const wanted = await run(modelOf(type));
    const own = modelOf(type);
    expect(convertWeights(own.model, 'ids', 'published')).toBe('published');
    expect([...own.model.graph.nodes].map(({ op }) => op)).toContain('MatMulNBits');
    // Computes with floats instead of 8-bit activations, so that only the weights are compared.
    floatProducts(own.model);
    prune(own.model.graph);
    expectAlike(await run(own), wanted);
  },
);

test.each([
  ['minima', ['Q4_1', 'Q4_K']],
  ['no minima', ['Q8_0', 'Q5_0', 'IQ4_NL']],
])('products of one value in blocks of one form, with %s, are one', async (_, types) => {
  const wanted = await run(modelOf('F32', ...types));
  const own = modelOf('F32', ...types);
  convertWeights(own.model, 'ids', 'published');
  expect(own.model.graph.nodes.filter(({ op }) => op === 'MatMulNBits')).toHaveLength(1);
  floatProducts(own.model);
  prune(own.model.graph);
  expectAlike(await run(own), wanted);
});

function expectAlike(got: readonly number[][], wanted: readonly number[][]): void {
  expect(got).toHaveLength(wanted.length);
  for (const [part, values] of wanted.entries()) {
    const largest = Math.max(...values.map(Math.abs));
    for (const [at, value] of values.entries())
      expect(Math.abs((got[part]?.[at] ?? 0) - value)).toBeLessThan(2e-6 * largest);
  }
}

test('weights that are not in such blocks are refused', () => {
  expect(() => convertWeights(modelOf('F16').model, 'ids', 'published')).toThrow(/not in the blocks of a GGUF file/);
});
