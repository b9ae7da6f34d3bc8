import { at } from '../../../lib/at.ts';
import { constantMatrices } from '../../onnx/format/constants.ts';
import {
  DataType,
  type Graph,
  makeNode,
  makeTensor,
  type OnnxModel,
  type OnnxNode,
  type Tensor,
} from '../../onnx/format/model.ts';
import type { FloatMatrix } from '../../onnx/format/tensor-data.ts';
import { asLinear, type Linear } from './linear.ts';

const MS = 'com.microsoft';
const UNIT = 'assay/int8_unit';
const ZERO = 'assay/int8_zero';
const TINY = 'assay/tiny';
const LAST = 'assay/last_axis';

/**
 * Replaces every MatMul and MatMulNBits with constant weights by a MatMul of 8-bit integers. Each activation row is
 * divided by its own largest magnitude and quantized with the constant scale 1/127; each output column of the weights
 * has its own scale. The numbers of a row depend on that row alone, so branches in one run do not change each other's
 * answers.
 */
export function int8Weights({ graph, opsets }: OnnxModel): void {
  const constant = constantMatrices(graph);
  const nodes: OnnxNode[] = [];
  const quantised = new Set<string>();
  opsets.set(MS, opsets.get(MS) ?? 1);
  graph.initializers.set(UNIT, makeTensor(UNIT, [], Float32Array.of(1 / 127)));
  graph.initializers.set(ZERO, makeTensor(ZERO, [], Uint8Array.of(128)));
  graph.initializers.set(TINY, makeTensor(TINY, [1], Float32Array.of(1e-8)));
  graph.initializers.set(LAST, makeTensor(LAST, [1], BigInt64Array.of(-1n)));
  const opset = opsets.get('') ?? 0;
  for (const node of graph.nodes) {
    const linear = asLinear(node, graph, constant);
    if (!linear) {
      nodes.push(node);
      continue;
    }
    const x = at(node.inputs, 0);
    if (!quantised.has(x)) {
      quantised.add(x);
      nodes.push(...quantizeRows(x, opset));
    }
    const [int8, scale] = quantizeColumns(graph, linear);
    const output = at(node.outputs, 0);
    const scaled = linear.bias ? `${output}/product` : output;
    nodes.push(
      makeNode('MatMulIntegerToFloat', [`${x}/int8`, int8, UNIT, scale, ZERO], [`${output}/unit`], {}, MS),
      makeNode('Mul', [`${output}/unit`, `${x}/magnitude`], [scaled]),
    );
    if (linear.bias) nodes.push(makeNode('Add', [scaled, linear.bias], [output]));
  }
  graph.nodes = nodes;
}

/** Returns nodes that compute `x/int8`, the rows of `x` in 8 bits, and `x/magnitude`, by which each row was divided. */
function quantizeRows(x: string, opset: number): OnnxNode[] {
  // Since opset 18, the axes are an input instead of an attribute.
  const largest =
    opset >= 18
      ? makeNode('ReduceMax', [`${x}/abs`, LAST], [`${x}/largest`], { keepdims: 1 })
      : makeNode('ReduceMax', [`${x}/abs`], [`${x}/largest`], { keepdims: 1, axes: [-1] });
  return [
    makeNode('Abs', [x], [`${x}/abs`]),
    largest,
    makeNode('Max', [`${x}/largest`, TINY], [`${x}/magnitude`]),
    makeNode('Div', [x, `${x}/magnitude`], [`${x}/normalised`]),
    makeNode('QuantizeLinear', [`${x}/normalised`, UNIT, ZERO], [`${x}/int8`]),
  ];
}

/**
 * Adds the weights to the graph as `[inputs, outputs]` in 8 bits with a scale for each output, once if several nodes
 * share them. Returns the names of both tensors.
 */
function quantizeColumns(graph: Graph, linear: Linear): [int8: string, scale: string] {
  const names: [string, string] = [`${linear.weight}/int8`, `${linear.weight}/scale`];
  const { inputs, outputs, matrix, byOutput } = linear;
  if (graph.initializers.has(names[0])) return names;
  const scales = lazily(() => (byOutput ? rowScales(matrix) : columnScales(matrix)));
  addTensor(graph, names[1], DataType.float, [outputs], outputs * 4, function* () {
    yield new Uint8Array(scales().buffer);
  });
  addTensor(graph, names[0], DataType.int8, [inputs, outputs], inputs * outputs, function* () {
    const whole = new Int8Array(inputs * outputs);
    matrix.forEachBlock((block, firstRow, rowCount) => {
      if (byOutput) transposeInto(whole, block, scales(), firstRow, rowCount, inputs, outputs);
      else quantiseInto(whole, block, scales(), firstRow * outputs);
    });
    yield new Uint8Array(whole.buffer);
  });
  return names;
}

/**
 * Stores the embedding table, and those of the layers if there are any, in 8 bits with a scale for each token. They
 * need a quarter of the memory of 32 bits, and only the rows of the given tokens are converted back. Leaves a table
 * unchanged that is not a constant matrix of floats.
 *
 * @param tokens input of the token ids, by which the tables are found
 */
export function int8Embedding({ graph }: OnnxModel, tokens: string): void {
  for (const node of graph.nodes.filter(({ op, inputs }) => op === 'Gather' && inputs[1] === tokens)) {
    int8Table(graph, node, tokens);
  }
}

function int8Table(graph: Graph, node: OnnxNode, tokens: string): void {
  const constant = constantMatrices(graph);
  const found = constant(at(node.inputs, 0));
  if (!found) return;
  const linear = asLinear({ ...node, op: 'MatMul', inputs: ['', at(node.inputs, 0)] }, graph, constant);
  if (!linear) return;
  // As weights of a MatMul, the rows of the table would be inputs; here each row gets a scale, so the roles are
  // swapped.
  const [rows, width] = [linear.inputs, linear.outputs];
  const { matrix } = linear;
  const name = `${linear.weight}/embedding`;
  const scales = lazily(() => (found.transposed ? columnScales(matrix) : rowScales(matrix)));
  addTensor(graph, `${name}_scale`, DataType.float, [rows, 1], rows * 4, function* () {
    yield new Uint8Array(scales().buffer);
  });
  addTensor(graph, name, DataType.int8, [rows, width], rows * width, function* () {
    const whole = new Int8Array(rows * width);
    matrix.forEachBlock((block, firstRow, rowCount) => {
      if (found.transposed) {
        for (let r = 0; r < rowCount; r++) {
          for (let v = 0; v < rows; v++) whole[v * width + firstRow + r] = toInt8(block[r * rows + v]! / scales()[v]!);
        }
      } else {
        for (let r = 0; r < rowCount; r++) {
          const scale = scales()[firstRow + r]!;
          for (let k = 0; k < width; k++) whole[(firstRow + r) * width + k] = toInt8(block[r * width + k]! / scale);
        }
      }
    });
    yield new Uint8Array(whole.buffer);
  });
  const output = at(node.outputs, 0);
  graph.nodes.splice(
    graph.nodes.indexOf(node),
    1,
    makeNode('Gather', [name, tokens], [`${output}/int8`]),
    makeNode('Cast', [`${output}/int8`], [`${output}/float`], { to: DataType.float }),
    makeNode('Gather', [`${name}_scale`, tokens], [`${output}/scale`]),
    makeNode('Mul', [`${output}/float`, `${output}/scale`], [output]),
  );
}

function quantiseInto(into: Int8Array, block: Float32Array, scales: Float32Array, offset: number): void {
  const columns = scales.length;
  for (let at = 0; at < block.length; at += columns) {
    for (let n = 0; n < columns; n++) into[offset + at + n] = toInt8(block[at + n]! / scales[n]!);
  }
}

function transposeInto(
  into: Int8Array,
  block: Float32Array,
  scales: Float32Array,
  firstRow: number,
  rowCount: number,
  inputs: number,
  outputs: number,
): void {
  const tile = 64; // rows at a time, so that the writes stay within a cache line
  for (let from = 0; from < rowCount; from += tile) {
    const to = Math.min(rowCount, from + tile);
    for (let k = 0; k < inputs; k++) {
      for (let row = from; row < to; row++) {
        into[k * outputs + firstRow + row] = toInt8(block[row * inputs + k]! / scales[firstRow + row]!);
      }
    }
  }
}

function rowScales(matrix: FloatMatrix): Float32Array {
  const scales = new Float32Array(matrix.rows);
  matrix.forEachBlock((block, firstRow, rowCount) => {
    for (let row = 0; row < rowCount; row++) {
      let largest = 0;
      for (let at = row * matrix.columns; at < (row + 1) * matrix.columns; at++) {
        largest = Math.max(largest, Math.abs(block[at]!));
      }
      scales[firstRow + row] = scaleFor(largest);
    }
  });
  return scales;
}

function columnScales(matrix: FloatMatrix): Float32Array {
  const { columns } = matrix;
  const largest = new Float32Array(columns);
  matrix.forEachBlock((block) => {
    for (let at = 0; at < block.length; at += columns) {
      for (let n = 0; n < columns; n++) {
        const magnitude = Math.abs(block[at + n]!);
        if (magnitude > largest[n]!) largest[n] = magnitude;
      }
    }
  });
  return largest.map(scaleFor);
}

/** Returns the scale for weights with this largest magnitude; 1 if all are zero. */
function scaleFor(largest: number): number {
  return largest > 0 ? largest / 127 : 1;
}

function toInt8(value: number): number {
  return Math.max(-127, Math.min(127, Math.round(value)));
}

function lazily<T>(make: () => T): () => T {
  let value: T | undefined;
  return () => {
    value ??= make();
    return value;
  };
}

function addTensor(
  graph: Graph,
  name: string,
  dataType: number,
  dims: number[],
  length: number,
  pieces: Extract<Tensor['data'], { pieces: unknown }>['pieces'],
): void {
  graph.initializers.set(name, { name, dataType, dims, data: { length, pieces } });
}
