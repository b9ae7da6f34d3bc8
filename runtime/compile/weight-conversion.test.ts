import { expect, test } from 'vitest';
import { makeNode, makeTensor, type OnnxModel } from '../onnx/format/model.ts';
import { readAll, readFloats } from '../onnx/format/tensor-data.ts';
import { blockExperts } from './weight-conversion.ts';

function modelOf(inputs: number): { model: OnnxModel; weights: Float32Array } {
  const weights = Float32Array.from({ length: 2 * 4 * inputs }, (_, i) => Math.sin(i * 1.7) * (1 + (i % 5)));
  const tensors = ['up', 'down'].map((name) => makeTensor(name, [2, 4, inputs], weights));
  const node = makeNode('MoE', ['x', 'scores', 'up', '', 'down', 'bias'], ['y'], { k: 1 }, 'com.microsoft');
  const initializers = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  return {
    weights,
    model: { opsets: new Map(), rest: [], graph: { nodes: [node], initializers, inputs: [], outputs: [], rest: [] } },
  };
}

test.each([4, 8] as const)('experts of %i bits have their weights within half a step', (bits) => {
  const { model, weights } = modelOf(32);
  blockExperts(model, bits);
  const [node] = model.graph.nodes;
  expect(node?.op).toBe('QMoE');
  const names = (matrix: string) => [`${matrix}/int${bits}`, `${matrix}/block_scale`];
  expect(node?.inputs).toEqual(['x', 'scores', ...names('up'), '', ...names('down'), 'bias']);
  const tensor = (name: string) => model.graph.initializers.get(name) ?? makeTensor('', [0], new Float32Array(0));
  const [scales, levels] = [readFloats(tensor('up/block_scale')), readAll(tensor(`up/int${bits}`))];
  expect([...model.graph.initializers.values()].slice(-2).map(({ dims }) => dims)).toEqual([
    [2, 4, 1],
    [2, 4, 4 * bits],
  ]);
  for (const [i, weight] of weights.entries()) {
    const level = bits === 8 ? (levels[i] ?? 0) : ((levels[i >> 1] ?? 0) >> (4 * (i & 1))) & 15;
    const scale = scales[Math.floor(i / 32)] ?? 0;
    expect(Math.abs((level - 2 ** (bits - 1)) * scale - weight)).toBeLessThanOrEqual(Math.abs(scale) * 1.001);
  }
});

test('experts that no block divides stay in floats', () => {
  const { model } = modelOf(24);
  blockExperts(model, 4);
  expect(model.graph.nodes[0]?.op).toBe('MoE');
});
