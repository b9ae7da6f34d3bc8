import type { BlockMatrix } from '../onnx/format/block-matrix.ts';
import { DataType, dataLength, type Tensor, type TensorData } from '../onnx/format/model.ts';
import { openData } from '../onnx/format/tensor-data.ts';
import { unusable } from '../onnx/unusable.ts';
import { asFloats, BLOCK_TYPES, blockType } from './gguf/blocks.ts';

/** Holds the weights of a checkpoint by name. Their bytes stay in the files until they are read. */
export type WeightSource = ReadonlyMap<string, StoredTensor>;

/** Describes a tensor of a checkpoint. */
export interface StoredTensor {
  name: string;
  /** Type of its elements or blocks, as its format names it: `BF16` in safetensors, `Q4_K` in GGUF. */
  dtype: string;
  /** Numbers of elements, the slowest dimension first: a linear layer's are `[outputs, inputs]`. */
  dims: number[];
  data: TensorData;
  /** The same matrix as a published graph has it, which products and lookups read unchanged. */
  published?: PublishedMatrix;
}

/**
 * Describes a matrix of a published graph: stored as `[inputs, outputs]`, or in the blocks of MatMulNBits, with the
 * node's `accuracy_level` if it has one.
 */
export type PublishedMatrix = { inputsFirst: Tensor } | { blocks: BlockMatrix; accuracy?: number };

/** ONNX element types of the float types that a graph reads as they are. */
const FLOATS: Readonly<Record<string, number>> = {
  F32: DataType.float,
  F16: DataType.float16,
  BF16: DataType.bfloat16,
};

/**
 * Returns a stored tensor as a tensor of a graph that reads the checkpoint's own bytes; blocks of GGUF files are
 * converted to 32-bit floats when they are read. Throws `engine_failed` for any other type than floats of 32 or 16 bits
 * and these blocks.
 */
export function floatTensor(stored: StoredTensor): Tensor {
  const type = blockType(stored);
  const { name, dtype, dims, data } = type ? asFloats(stored, type) : stored;
  const dataType = FLOATS[dtype];
  if (dataType === undefined) {
    throw unusable(
      `the weight "${name}" has the type ${dtype}, and only ${Object.keys(FLOATS).join(', ')} and, of GGUF files, ${Object.keys(BLOCK_TYPES).join(', ')} are read`,
      'Use a copy of this model whose weights have one of these types.',
    );
  }
  return { name, dataType, dims, data };
}

/** Returns a matrix of the rows of a stored matrix with these numbers, which are read when the result is. */
export function rowsOf(stored: StoredTensor, rows: readonly number[]): StoredTensor {
  const [count = 0, ...rest] = stored.dims;
  const outside = rows.find((row) => row >= count);
  if (outside !== undefined)
    throw unusable(`the weight "${stored.name}" has ${count} rows, and row ${outside} is needed`);
  const bytes = dataLength(stored.data) / count;
  return {
    ...stored,
    name: `${stored.name}/rows`,
    dims: [rows.length, ...rest],
    data: {
      length: rows.length * bytes,
      *pieces() {
        const reader = openData(stored.data);
        try {
          for (const row of rows) yield reader.read(row * bytes, (row + 1) * bytes);
        } finally {
          reader.close();
        }
      },
    },
  };
}
