/**
 * Suffix, before `.onnx`, of a graph's file name for each published number format (guide "dtypes" of transformers.js).
 */
export const DTYPE_SUFFIX = {
  q4f16: '_q4f16',
  q4: '_q4',
  int8: '_int8',
  q8: '_quantized',
  fp16: '_fp16',
  fp32: '',
} as const;
export type Dtype = keyof typeof DTYPE_SUFFIX;
export const DTYPES = Object.keys(DTYPE_SUFFIX) as readonly Dtype[];
