import { at } from '../../../lib/at.ts';
import { blockMatrix, blockRows } from '../../onnx/format/block-matrix.ts';
import { type ConstantMatrix, EXACT, isTransposedProduct } from '../../onnx/format/constants.ts';
import type { Graph, OnnxNode } from '../../onnx/format/model.ts';
import { type FloatMatrix, floatMatrix } from '../../onnx/format/tensor-data.ts';

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

/** Rows of blocks that are decoded at a time. */
const ROWS_AT_A_TIME = 256;

function fromBlocks(node: OnnxNode, graph: Graph): Linear | undefined {
  const found = blockMatrix(node, graph);
  if (!found) return undefined;
  const { rows, columns } = found;
  const matrix: FloatMatrix = {
    rows,
    columns,
    forEachBlock(visit) {
      for (let first = 0; first < rows; first += ROWS_AT_A_TIME) {
        const count = Math.min(ROWS_AT_A_TIME, rows - first);
        visit(blockRows(found, first, count), first, count);
      }
    },
  };
  const bias = node.inputs[5];
  return {
    node,
    weight: found.levels.name,
    inputs: columns,
    outputs: rows,
    matrix,
    byOutput: true,
    ...(bias ? { bias } : {}),
  };
}
