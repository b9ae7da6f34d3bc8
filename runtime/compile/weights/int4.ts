import { at } from '../../../lib/at.ts';
import { constantMatrices } from '../../onnx/constants.ts';
import { attributeFields, DataType, type Model, makeNode } from '../../onnx/model.ts';
import { asLinear, type Linear } from './linear.ts';

/** Describes weights in blocks of a column that share a scale. */
export interface BlockFormat {
  bits: 4 | 8;
  /** Inputs that share a scale. */
  size: number;
}

/** Format for CPUs. Measured: 128 inputs are a third faster than 32, and the scales take a quarter of the space. */
const CPU_BLOCKS: BlockFormat = { bits: 4, size: 128 };
/** `accuracy_level` for sums in 8-bit integers: each block of an activation row has its own scale. */
const ACCURACY = 4;
const MS = 'com.microsoft';

/** Turns float products into MatMulNBits of 4 bits; weights that are published in blocks stay as they are. */
export function int4Weights(model: Model): void {
  blockWeights(model, CPU_BLOCKS);
}

/** Turns float products into MatMulNBits; weights that are published in blocks stay as they are. */
export function blockWeights({ graph, opsets }: Model, format: BlockFormat): void {
  const { bits, size } = format;
  const constant = constantMatrices(graph);
  opsets.set(MS, opsets.get(MS) ?? 1);
  graph.nodes = graph.nodes.map((node) => {
    if (node.op === 'MatMulNBits') {
      node.attributes.set('accuracy_level', attributeFields('accuracy_level', ACCURACY));
      return node;
    }
    const linear = asLinear(node, graph, constant);
    if (!linear) return node;
    const { inputs, outputs } = linear;
    const names = [`${linear.weight}/int${bits}`, `${linear.weight}/block_scale`] as const;
    const blocks = Math.ceil(inputs / size);
    if (!graph.initializers.has(names[0])) {
      let scales: Float32Array | undefined;
      const scaleOf = () => (scales ??= blockScales(linear, blocks, format));
      graph.initializers.set(names[1], {
        name: names[1],
        dataType: DataType.float,
        dims: [outputs * blocks],
        data: {
          length: outputs * blocks * 4,
          *pieces() {
            yield new Uint8Array(scaleOf().buffer);
          },
        },
      });
      graph.initializers.set(names[0], {
        name: names[0],
        dataType: DataType.uint8,
        dims: [outputs, blocks, (size * bits) / 8],
        data: {
          length: (outputs * blocks * size * bits) / 8,
          *pieces() {
            yield packBlocks(linear, blocks, scaleOf(), format);
          },
        },
      });
    }
    const attributes = { K: inputs, N: outputs, bits, block_size: size, accuracy_level: ACCURACY };
    return makeNode('MatMulNBits', [at(node.inputs, 0), ...names], [at(node.outputs, 0)], attributes, MS);
  });
}

/**
 * Computes the scales as onnxruntime's quantizer does: the value of largest magnitude becomes the lowest level, so its
 * sign is the sign of the scale.
 */
function blockScales(linear: Linear, blocks: number, { bits, size }: BlockFormat): Float32Array {
  const extremes = new Float32Array(linear.outputs * blocks);
  forEachWeight(linear, (output, input, value) => {
    const at = output * blocks + Math.floor(input / size);
    if (Math.abs(value) > Math.abs(extremes[at]!)) extremes[at] = value;
  });
  return extremes.map((extreme) => (extreme === 0 ? 1 : extreme / -zeroLevel(bits)));
}

function packBlocks(linear: Linear, blocks: number, scales: Float32Array, { bits, size }: BlockFormat): Uint8Array {
  const rowBytes = (blocks * size * bits) / 8;
  const zero = zeroLevel(bits);
  // The padding of the last block is zero.
  const packed = new Uint8Array(linear.outputs * rowBytes).fill(bits === 4 ? 0x88 : zero);
  forEachWeight(linear, (output, input, value) => {
    const scale = scales[output * blocks + Math.floor(input / size)]!;
    const level = Math.max(0, Math.min(2 * zero - 1, Math.round(value / scale) + zero));
    const at = output * rowBytes + ((input * bits) >> 3);
    if (bits === 8) packed[at] = level;
    else packed[at] = input & 1 ? (packed[at]! & 15) | (level << 4) : (packed[at]! & 240) | level;
  });
  return packed;
}

/**
 * Returns the level of zero: the middle of the unsigned levels. Source: docs/ContribOperators.md,
 * com.microsoft.MatMulNBits.
 */
function zeroLevel(bits: BlockFormat['bits']): number {
  return 1 << (bits - 1);
}

function forEachWeight(linear: Linear, visit: (output: number, input: number, value: number) => void): void {
  const { matrix, byOutput } = linear;
  matrix.forEachBlock((block, firstRow, rowCount) => {
    for (let row = 0; row < rowCount; row++) {
      for (let column = 0; column < matrix.columns; column++) {
        const value = block[row * matrix.columns + column]!;
        if (byOutput) visit(firstRow + row, column, value);
        else visit(column, firstRow + row, value);
      }
    }
  });
}
