import { DataType, type Tensor, type TensorData } from '../onnx/format/model.ts';
import { unusable } from '../onnx/unusable.ts';

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
}

/** ONNX element types of the float types that a graph reads as they are. */
const FLOATS: Readonly<Record<string, number>> = {
  F32: DataType.float,
  F16: DataType.float16,
  BF16: DataType.bfloat16,
};

/**
 * Returns a stored tensor as a tensor of a graph that reads the checkpoint's own bytes. Throws `engine_failed` for any
 * type other than floats of 32 or 16 bits.
 */
export function floatTensor({ name, dtype, dims, data }: StoredTensor): Tensor {
  const dataType = FLOATS[dtype];
  if (dataType === undefined) {
    throw unusable(
      `the weight "${name}" has the type ${dtype}, and only F32, F16 and BF16 are read`,
      'Use the copy of this model whose weights are not quantised.',
    );
  }
  return { name, dataType, dims, data };
}
