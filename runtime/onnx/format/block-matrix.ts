import { attribute, DataType, elementCount, type Graph, type OnnxNode, type Tensor } from './model.ts';
import { readSome, readSomeFloats } from './tensor-data.ts';

/**
 * Describes a matrix `[rows, columns]` in the blocks of MatMulNBits (onnxruntime, docs/ContribOperators.md): each row
 * has blocks of levels of 4 or 8 bits, the low half of a byte first, with a scale and an optional zero point each.
 */
export interface BlockMatrix {
  rows: number;
  columns: number;
  bits: 4 | 8;
  /** Number of columns in a block. */
  size: number;
  levels: Tensor;
  scales: Tensor;
  zeros?: Tensor;
}

/** Returns the weights of a MatMulNBits node; undefined for weights in a form that is not read. */
export function blockMatrix(node: OnnxNode, { initializers }: Graph): BlockMatrix | undefined {
  const [, weight = '', scale = '', zeroPoint, order] = node.inputs;
  const bits = attribute(node, 'bits') ?? 4;
  const [columns, rows, size] = ['K', 'N', 'block_size'].map((name) => attribute(node, name));
  const [levels, scales] = [initializers.get(weight), initializers.get(scale)];
  const zeros = zeroPoint ? initializers.get(zeroPoint) : undefined;
  if (!levels || !scales || order || (zeroPoint && zeros?.dataType !== levels.dataType)) return undefined;
  if (typeof columns !== 'number' || typeof rows !== 'number' || typeof size !== 'number') return undefined;
  if (bits !== 4 && bits !== 8) return undefined;
  const blocks = Math.ceil(columns / size);
  const sizes = [rows * blocks * ((size * bits) / 8), rows * blocks, rows * Math.ceil((blocks * bits) / 8)];
  const fits = [levels, scales, zeros].every((tensor, i) => !tensor || elementCount(tensor) === sizes[i]);
  if (!fits || levels.dataType !== DataType.uint8) return undefined;
  return { rows, columns, bits, size, levels, scales, ...(zeros ? { zeros } : {}) };
}

/** Computes `count` rows of such a matrix in floats, from the row `first` on. */
export function blockRows(
  { columns, bits, size, levels, scales, zeros }: BlockMatrix,
  first: number,
  count: number,
): Float32Array<ArrayBuffer> {
  const blocks = Math.ceil(columns / size);
  const rowBytes = (blocks * size * bits) / 8;
  const zeroBytes = Math.ceil((blocks * bits) / 8);
  const bytes = readSome(levels.data, first * rowBytes, (first + count) * rowBytes);
  const zeroPoints = zeros && readSome(zeros.data, first * zeroBytes, (first + count) * zeroBytes);
  const factors = readSomeFloats(scales, first * blocks, count * blocks);
  const zeroOf = (row: number, block: number): number => {
    if (!zeroPoints) return bits === 4 ? 8 : 128;
    if (bits === 8) return zeroPoints[row * zeroBytes + block] ?? 0;
    return ((zeroPoints[row * zeroBytes + (block >> 1)] ?? 0) >> (4 * (block & 1))) & 15;
  };
  const floats = new Float32Array(count * columns);
  for (let row = 0; row < count; row++) {
    for (let block = 0; block < blocks; block++) {
      const factor = factors[row * blocks + block] ?? 0;
      const zero = zeroOf(row, block);
      const end = Math.min(columns, (block + 1) * size);
      for (let k = block * size; k < end; k++) {
        const level =
          bits === 8
            ? (bytes[row * rowBytes + k] ?? 0)
            : ((bytes[row * rowBytes + (k >> 1)] ?? 0) >> (4 * (k & 1))) & 15;
        floats[row * columns + k] = (level - zero) * factor;
      }
    }
  }
  return floats;
}
