import { at } from '../../../lib/at.ts';
import { attributeFields, DataType, type Graph, type Model, type Node, type Tensor } from '../../onnx/format/model.ts';
import { readPieces, widened } from '../../onnx/format/tensor-data.ts';
import { centreBlock } from './fit-block.ts';

/** Number of inputs of an expert that share a scale, the first that divides all inputs. */
const BLOCKS = [64, 32, 16];

/**
 * Replaces the matrices of experts in floats (MoE) with blocks of 4 or 8 bits (QMoE), of which each has a scale and its
 * zero in the middle. Leaves experts unchanged whose inputs no block divides. Source: onnxruntime,
 * docs/ContribOperators.md, com.microsoft.QMoE.
 */
export function blockExperts({ graph }: Model, bits: 4 | 8): void {
  for (const node of graph.nodes.filter(({ op, domain }) => op === 'MoE' && domain === 'com.microsoft')) {
    const [x = '', scores = '', gateUp = '', gateUpBias = '', down = '', downBias = ''] = node.inputs;
    const matrices = [gateUp, down].map((name) => graph.initializers.get(name));
    const size = BLOCKS.find((block) => matrices.every((tensor) => (tensor?.dims[2] ?? 0) % block === 0));
    const [first, second] = matrices;
    if (!size || !first || !second || node.inputs.slice(6).some(Boolean)) continue;
    const blocks = (tensor: Tensor, bias: string) => [...addBlocks(graph, tensor, { bits, size }), bias];
    node.op = 'QMoE';
    node.inputs = [x, scores, ...blocks(first, gateUpBias), ...blocks(second, downBias)];
    setInteger(node, 'expert_weight_bits', bits);
    setInteger(node, 'block_size', size);
  }
}

function setInteger(node: Node, name: string, value: number): void {
  node.attributes.set(name, attributeFields(name, value));
}

/** Adds the levels and the scales of a tensor `[experts, outputs, inputs]`; returns their names. */
function addBlocks(
  graph: Graph,
  tensor: Tensor,
  format: { bits: 4 | 8; size: number },
): [levels: string, scales: string] {
  const { bits, size } = format;
  const [experts, outputs, inputs] = [at(tensor.dims, 0), at(tensor.dims, 1), at(tensor.dims, 2)];
  const rows = experts * outputs;
  const add = (part: 'levels' | 'scales', dataType: number, width: number, rowBytes: number): string => {
    const name = `${tensor.name}/${part}${bits}`;
    const data = { length: rows * rowBytes, pieces: () => packedRows(tensor, inputs, format, part) };
    graph.initializers.set(name, { name, dataType, dims: [experts, outputs, width], data });
    return name;
  };
  const width = (inputs * bits) / 8;
  return [
    add('levels', DataType.uint8, width, width),
    add('scales', DataType.float, inputs / size, (inputs / size) * 4),
  ];
}

/** Yields the levels or the scales of rows as they are read, so that only some experts are in memory at a time. */
function* packedRows(
  tensor: Tensor,
  inputs: number,
  { bits, size }: { bits: 4 | 8; size: number },
  part: 'levels' | 'scales',
): Generator<Uint8Array> {
  const levels = new Uint8Array(size);
  let rest = new Uint8Array(0);
  for (const piece of readPieces(widened(tensor).data).pieces()) {
    const bytes = new Uint8Array(rest.length + piece.length);
    bytes.set(rest);
    bytes.set(piece, rest.length);
    const whole = bytes.length - (bytes.length % (inputs * 4));
    rest = bytes.slice(whole);
    const values = new Float32Array(bytes.buffer, 0, whole / 4);
    const packed = new Uint8Array((values.length * bits) / 8);
    const scales = new Float32Array(values.length / size);
    for (let start = 0; start < values.length; start += size) {
      scales[start / size] = centreBlock(values.subarray(start, start + size), levels, bits).scale;
      if (bits === 8) packed.set(levels, start);
      else for (let i = 0; i < size; i += 2) packed[(start + i) >> 1] = (levels[i] ?? 0) | ((levels[i + 1] ?? 0) << 4);
    }
    yield part === 'levels' ? packed : new Uint8Array(scales.buffer);
  }
}
