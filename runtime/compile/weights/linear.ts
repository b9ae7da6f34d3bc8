import { at } from '../../../lib/at.ts';
import { type ConstantMatrix, EXACT, isTransposedProduct } from '../../onnx/format/constants.ts';
import { attribute, type Graph, type OnnxNode } from '../../onnx/format/model.ts';
import { type FloatMatrix, floatMatrix, openData, readAll, readFloats } from '../../onnx/format/tensor-data.ts';

/** Describes a MatMul `x · W` with constant weights, in any published format. */
export interface Linear {
  node: OnnxNode;
  /** Prefix of the names of all tensors that are made from these weights. */
  weight: string;
  inputs: number;
  outputs: number;
  /** Weights as floats, with one row for each output if `byOutput`, otherwise one for each input. */
  matrix: FloatMatrix;
  byOutput: boolean;
  /** Name of the bias that a MatMulNBits node adds to the result. */
  bias?: string;
}

/**
 * Describes a MatMul, FusedMatMul (`x · Wᵀ`) or MatMulNBits node with constant weights; returns undefined for any
 * other node, and for weights in an unsupported format.
 */
export function asLinear(
  node: OnnxNode,
  graph: Graph,
  constant: (name: string) => ConstantMatrix | undefined,
): Linear | undefined {
  const transposing = isTransposedProduct(node);
  if ((node.op === 'MatMul' && node.domain === '') || transposing) {
    const found = constant(at(node.inputs, 1));
    const matrix = found && floatMatrix(found.tensor);
    if (!matrix || found.tensor.name.startsWith(EXACT)) return undefined;
    const byOutput = found.transposed !== transposing;
    const [inputs, outputs] = byOutput ? [matrix.columns, matrix.rows] : [matrix.rows, matrix.columns];
    return { node, weight: found.tensor.name, inputs, outputs, matrix, byOutput };
  }
  if (node.op === 'MatMulNBits') return fromBlocks(node, graph);
  return undefined;
}

/**
 * Describes a MatMulNBits node (onnxruntime, docs/ContribOperators.md). Its weights `[N, blocks, bytes]` have 4 or 8
 * bits, the low half of a byte first, with a scale and an optional zero point for each block of inputs.
 */
function fromBlocks(node: OnnxNode, graph: Graph): Linear | undefined {
  const [, weight, scale, zeroPoint, groupIndex, bias] = node.inputs;
  const bits = attribute(node, 'bits') ?? 4;
  const [inputs, outputs, blockSize] = ['K', 'N', 'block_size'].map((name) => attribute(node, name));
  const packed = graph.initializers.get(weight ?? '');
  const scales = graph.initializers.get(scale ?? '');
  const zeros = zeroPoint ? graph.initializers.get(zeroPoint) : undefined;
  if (!packed || !scales || groupIndex || (zeroPoint && zeros?.dataType !== packed.dataType)) return undefined;
  if (typeof inputs !== 'number' || typeof outputs !== 'number' || typeof blockSize !== 'number') return undefined;
  if (bits !== 4 && bits !== 8) return undefined;
  const blocks = Math.ceil(inputs / blockSize);
  const rowBytes = (blocks * blockSize * bits) / 8;
  const blockRows = 256;
  const matrix: FloatMatrix = {
    rows: outputs,
    columns: inputs,
    forEachBlock(visit) {
      const scaleOf = readFloats(scales);
      const zeroBytes = zeros && readAll(zeros);
      const zeroRow = Math.ceil((blocks * bits) / 8);
      const zeroOf = (row: number, block: number): number => {
        if (!zeroBytes) return bits === 4 ? 8 : 128;
        if (bits === 8) return zeroBytes[row * zeroRow + block]!;
        return (zeroBytes[row * zeroRow + (block >> 1)]! >> (4 * (block & 1))) & 15;
      };
      const reader = openData(packed.data);
      try {
        for (let first = 0; first < outputs; first += blockRows) {
          const count = Math.min(blockRows, outputs - first);
          const bytes = reader.read(first * rowBytes, (first + count) * rowBytes);
          const floats = new Float32Array(count * inputs);
          for (let row = 0; row < count; row++) {
            for (let block = 0; block < blocks; block++) {
              const scaled = scaleOf[(first + row) * blocks + block]!;
              const zero = zeroOf(first + row, block);
              const end = Math.min(inputs, (block + 1) * blockSize);
              for (let k = block * blockSize; k < end; k++) {
                const value =
                  bits === 8 ? bytes[row * rowBytes + k]! : (bytes[row * rowBytes + (k >> 1)]! >> (4 * (k & 1))) & 15;
                floats[row * inputs + k] = (value - zero) * scaled;
              }
            }
          }
          visit(floats, first, count);
        }
      } finally {
        reader.close();
      }
    },
  };
  return { node, weight: weight!, inputs, outputs, matrix, byOutput: true, ...(bias ? { bias } : {}) };
}
