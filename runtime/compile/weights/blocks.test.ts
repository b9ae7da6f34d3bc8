import { describe, expect, test } from 'vitest';
import { constantMatrices } from '../../onnx/format/constants.ts';
import { attribute, type Graph, makeNode, makeTensor, type OnnxModel } from '../../onnx/format/model.ts';
import { type BlockFormat, blockWeights, int8BlockWeights } from './blocks.ts';
import { fitBlock } from './fit-block.ts';
import { asLinear } from './linear.ts';

/** Returns weights whose range differs from block to block, the same for every call. */
function weights(count: number): Float32Array {
  return Float32Array.from(
    { length: count },
    (_, i) => Math.sin(i * 12.9898) * (1 + (i % 7)) + (Math.floor(i / 32) % 3),
  );
}

function modelOf(inputs: number, outputs: number, byOutput: boolean): OnnxModel {
  const values = weights(inputs * outputs);
  const dims = byOutput ? [outputs, inputs] : [inputs, outputs];
  const graph: Graph = { nodes: [], initializers: new Map(), inputs: [], outputs: [], rest: [] };
  graph.initializers.set('w', makeTensor('w', dims, values));
  if (byOutput) graph.nodes.push(makeNode('Transpose', ['w'], ['wt'], { perm: [1, 0] }));
  graph.nodes.push(makeNode('MatMul', ['x', byOutput ? 'wt' : 'w'], ['y']));
  return { opsets: new Map([['', 21]]), graph, rest: [] };
}

function matrixOf(graph: Graph): Float32Array {
  const linear = asLinear(graph.nodes.at(-1)!, graph, constantMatrices(graph))!;
  const { inputs, outputs, matrix, byOutput } = linear;
  const all = new Float32Array(inputs * outputs);
  matrix.forEachBlock((block, first, rows) => {
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < matrix.columns; column++) {
        const [output, input] = byOutput ? [first + row, column] : [column, first + row];
        all[output * inputs + input] = block[row * matrix.columns + column]!;
      }
    }
  });
  return all;
}

const FORMATS: [string, BlockFormat, number][] = [
  ['4 bits with zero points', { bits: 4, size: 32, zeroPoints: true }, 0.1],
  ['4 bits around zero', { bits: 4, size: 32 }, 0.15],
  ['8 bits around zero', { bits: 8, size: 32 }, 0.01],
];

describe.each(FORMATS)('%s', (_, format, bound) => {
  test.each([
    [64, 5, true],
    [64, 5, false],
    [50, 3, true],
    [50, 3, false],
  ])('%i inputs, %i outputs, by output: %s', (inputs, outputs, byOutput) => {
    const model = modelOf(inputs, outputs, byOutput);
    const wanted = matrixOf(model.graph);
    blockWeights(model, format);
    const got = matrixOf(model.graph);
    const square = (values: Float32Array) => values.reduce((sum, value) => sum + value * value, 0);
    const error = square(wanted.map((value, i) => value - got[i]!)) / square(wanted);
    expect(Math.sqrt(error)).toBeLessThan(bound);
  });
});

test('8 bits in blocks replace published blocks of 4 bits, keep published ones of 8, and keep the bias', () => {
  const model = modelOf(64, 5, true);
  blockWeights(model, { bits: 4, size: 32 });
  const node = model.graph.nodes.at(-1)!;
  node.inputs.push('', '', 'bias');
  const wanted = matrixOf(model.graph);
  int8BlockWeights(model);
  const converted = model.graph.nodes.at(-1)!;
  expect(attribute(converted, 'bits')).toBe(8);
  expect(converted.inputs.slice(3)).toEqual(['', '', 'bias']);
  for (const [i, value] of matrixOf(model.graph).entries()) expect(value).toBeCloseTo(wanted[i]!, 1);
  int8BlockWeights(model);
  expect(model.graph.nodes.at(-1)).toBe(converted);
});

describe('fitBlock', () => {
  test.each([
    ['levels at equal steps', [-3, -2, -1, 0, 1, 2, 12], 0],
    ['zeros', [0, 0, 0], 0],
    ['positive values', [5, 10, 15], 0],
    ['one value', [-7], 0],
    ['an outlier', [0.1, -0.1, 0.2, -0.2, 4], 0.1],
  ])('%s', (_, values, bound) => {
    const levels = new Uint8Array(values.length);
    const { scale, zero } = fitBlock(Float32Array.from(values), levels);
    for (const [i, value] of values.entries())
      expect(Math.abs((levels[i]! - zero) * scale - value)).toBeLessThanOrEqual(bound + 1e-5);
  });
});
