import { at } from '../../../lib/at.ts';
import { constantMatrices } from '../../onnx/format/constants.ts';
import {
  attribute,
  attributeFields,
  DataType,
  type Graph,
  makeNode,
  type OnnxModel,
  type OnnxNode,
} from '../../onnx/format/model.ts';
import { centreBlock, fitBlock } from './fit-block.ts';
import { asLinear, type Linear } from './linear.ts';

/**
 * Describes the format of block-quantized weights: each output's weights are split into blocks of inputs that share a
 * scale.
 */
export interface BlockFormat {
  bits: 4 | 8;
  /** Number of inputs in a block. */
  size: number;
  /** True to store a zero point for each block; only for 4 bits. Otherwise zero is the middle level. */
  zeroPoints?: boolean;
  /** True to convert weights that are published in blocks of fewer bits, too; otherwise they are left unchanged. */
  convertFewerBits?: boolean;
}

/**
 * Block format of 4-bit weights for CPUs. Blocks of 32 would reduce the error by a fifth to a quarter and take 1.38
 * times as long; zero points cost no time (measured).
 */
const CPU_BLOCKS: BlockFormat = { bits: 4, size: 128, zeroPoints: true };
/**
 * Block format of 8-bit weights for CPUs. Blocks of 32 would reduce the error by a tenth and take 1.06 times as long;
 * blocks of 128 would increase it by a quarter and take 0.91 of the time (measured on SmolLM2-135M, docs/models.md).
 */
const CPU_BLOCKS_OF_8_BITS: BlockFormat = { bits: 8, size: 64, convertFewerBits: true };
/**
 * Value of `accuracy_level` that lets MatMulNBits compute with 8-bit integers, where each block of an activation row
 * has its own scale.
 */
export const ACCURACY = 4;
const MS = 'com.microsoft';

/**
 * Replaces MatMul nodes that have constant float weights with MatMulNBits nodes of 4 bits. Weights that the published
 * model already stores block-quantized are left unchanged.
 */
export function int4Weights(model: OnnxModel): void {
  blockWeights(model, CPU_BLOCKS);
}

/**
 * Replaces MatMul nodes that have constant float weights, and MatMulNBits nodes of 4 bits, with MatMulNBits nodes of 8
 * bits.
 */
export function int8BlockWeights(model: OnnxModel): void {
  blockWeights(model, CPU_BLOCKS_OF_8_BITS);
}

/**
 * Replaces MatMul nodes that have constant float weights with MatMulNBits nodes in the given format. Weights that the
 * published model already stores block-quantized are left unchanged, unless the format converts them. All MatMulNBits
 * nodes are set to compute with 8-bit activations.
 */
export function blockWeights({ graph, opsets }: OnnxModel, format: BlockFormat): void {
  const constant = constantMatrices(graph);
  opsets.set(MS, opsets.get(MS) ?? 1);
  graph.nodes = graph.nodes.map((node) => {
    const linear = staysPublished(node, format) ? undefined : asLinear(node, graph, constant);
    if (!linear) {
      if (node.op === 'MatMulNBits') node.attributes.set('accuracy_level', attributeFields('accuracy_level', ACCURACY));
      return node;
    }
    const weights = addBlocks(graph, linear, format);
    const { inputs, outputs, bias } = linear;
    // Inputs of MatMulNBits: activations, levels, scales, zero points, order of the inputs, bias.
    if (bias) weights.push(...(format.zeroPoints ? [] : ['']), '', bias);
    const attributes = { K: inputs, N: outputs, bits: format.bits, block_size: format.size, accuracy_level: ACCURACY };
    return makeNode('MatMulNBits', [at(node.inputs, 0), ...weights], [at(node.outputs, 0)], attributes, MS);
  });
}

function staysPublished(node: OnnxNode, { bits, convertFewerBits }: BlockFormat): boolean {
  if (node.op !== 'MatMulNBits') return false;
  return !convertFewerBits || Number(attribute(node, 'bits') ?? 4) >= bits;
}

/**
 * Adds block-quantized weights to the graph, once if several nodes share them. Returns the names of the tensors with
 * levels, scales and zero points. Shapes: onnxruntime, docs/ContribOperators.md, com.microsoft.MatMulNBits.
 */
export function addBlocks(graph: Graph, linear: Linear, format: BlockFormat): string[] {
  const { weight, inputs, outputs } = linear;
  const { bits, size, zeroPoints } = format;
  const blocks = Math.ceil(inputs / size);
  const names = { levels: `${weight}/int${bits}`, scales: `${weight}/block_scale`, zeros: `${weight}/block_zero` };
  const all = [names.levels, names.scales, ...(zeroPoints ? [names.zeros] : [])];
  if (graph.initializers.has(names.levels)) return all;
  // The levels are written last and then freed, so only the weights of one node are in memory at a time.
  let packed: PackedBlocks | undefined;
  const add = (name: string, dataType: number, dims: number[], length: number, part: keyof PackedBlocks): void => {
    graph.initializers.set(name, {
      name,
      dataType,
      dims,
      data: {
        length,
        *pieces() {
          packed ??= packBlocks(linear, blocks, format);
          const { buffer } = packed[part];
          if (part === 'levels') packed = undefined;
          yield new Uint8Array(buffer);
        },
      },
    });
  };
  add(names.scales, DataType.float, [outputs * blocks], outputs * blocks * 4, 'scales');
  const zeroBytes = Math.ceil((blocks * bits) / 8);
  if (zeroPoints) add(names.zeros, DataType.uint8, [outputs * zeroBytes], outputs * zeroBytes, 'zeros');
  const blockBytes = (size * bits) / 8;
  add(names.levels, DataType.uint8, [outputs, blocks, blockBytes], outputs * blocks * blockBytes, 'levels');
  return all;
}

interface PackedBlocks {
  levels: Uint8Array<ArrayBuffer>;
  scales: Float32Array<ArrayBuffer>;
  zeros: Uint8Array<ArrayBuffer>;
}

function packBlocks(linear: Linear, blocks: number, { bits, size, zeroPoints }: BlockFormat): PackedBlocks {
  const { outputs } = linear;
  const blockBytes = (size * bits) / 8;
  const zeroBytes = Math.ceil((blocks * bits) / 8);
  const packed = {
    levels: new Uint8Array(outputs * blocks * blockBytes),
    scales: new Float32Array(outputs * blocks),
    zeros: new Uint8Array(outputs * zeroBytes),
  };
  const levels = new Uint8Array(size);
  forEachBlock(linear, size, (output, block, values) => {
    const { scale, zero } = zeroPoints ? fitBlock(values, levels) : centreBlock(values, levels, bits);
    const index = output * blocks + block;
    packed.scales[index] = scale;
    packed.zeros[output * zeroBytes + ((block * bits) >> 3)]! |= bits === 4 ? zero << (4 * (block & 1)) : zero;
    levels.fill(zero, values.length); // padding
    const start = index * blockBytes;
    if (bits === 8) packed.levels.set(levels, start);
    else for (let i = 0; i < size; i++) packed.levels[start + (i >> 1)]! |= levels[i]! << (4 * (i & 1));
  });
  return packed;
}

/** Calls `visit` with each block of each output's weights. The last block of an output may be shorter. */
function forEachBlock(
  { matrix, byOutput, inputs }: Linear,
  size: number,
  visit: (output: number, block: number, values: Float32Array) => void,
): void {
  if (byOutput) {
    matrix.forEachBlock((floats, firstRow, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        for (let from = 0; from < inputs; from += size) {
          const start = row * inputs;
          visit(firstRow + row, from / size, floats.subarray(start + from, start + Math.min(inputs, from + size)));
        }
      }
    });
    return;
  }
  // The matrix has one row for each input. As many rows as a block has inputs form a strip with a block of every
  // output.
  const { columns } = matrix;
  const strip = new Float32Array(columns * size);
  matrix.forEachBlock((floats, firstRow, rowCount) => {
    for (let row = 0; row < rowCount; row++) {
      const input = firstRow + row;
      const inStrip = input % size;
      for (let column = 0; column < columns; column++) strip[column * size + inStrip] = floats[row * columns + column]!;
      if (inStrip + 1 < size && input + 1 < inputs) continue;
      for (let column = 0; column < columns; column++) {
        visit(column, Math.floor(input / size), strip.subarray(column * size, column * size + inStrip + 1));
      }
    }
  });
}
