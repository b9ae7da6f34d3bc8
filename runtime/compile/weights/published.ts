import { at } from '../../../lib/at.ts';
import { EXACT, isTransposedProduct } from '../../onnx/format/constants.ts';
import {
  DataType,
  type Graph,
  type MatrixBlocks,
  makeNode,
  makeTensor,
  type OnnxModel,
  type OnnxNode,
  type Tensor,
} from '../../onnx/format/model.ts';
import { ACCURACY } from './blocks.ts';
import { blocksIn } from './stack.ts';

const MS = 'com.microsoft';
/** Weights that are decoded at a time. */
const WEIGHTS_AT_A_TIME = 1 << 22;

/** Describes a matrix of the graph that was published in blocks. */
interface Published {
  name: string;
  rows: number;
  columns: number;
  blocks: MatrixBlocks;
}

/** Tells whether a graph has matrices that were published in blocks. */
export function hasPublishedBlocks({ initializers }: Graph): boolean {
  return [...initializers.values()].some((tensor) => publishedIn(tensor) !== undefined);
}

function publishedIn(tensor: Tensor | undefined): Published | undefined {
  const blocks = blocksIn(tensor);
  return tensor && blocks && { name: tensor.name, rows: at(tensor.dims, 0), columns: at(tensor.dims, 1), blocks };
}

/**
 * Makes the products with matrices that were published in blocks use these blocks, and lookups in them by `tokens`,
 * too. Levels and scales are unchanged. MatMulNBits knows no minimum of a block: its largest part becomes a zero point,
 * which is a whole level, and the rest is multiplied by the sum of the block's inputs.
 */
export function publishedWeights({ graph, opsets }: OnnxModel, tokens: string): void {
  opsets.set(MS, opsets.get(MS) ?? 1);
  const sums = new Map<string, string>();
  graph.nodes = graph.nodes.flatMap((node) => {
    if (isTransposedProduct(node)) {
      const found = publishedIn(graph.initializers.get(at(node.inputs, 1)));
      return found ? product(graph, node, found, sums) : [node];
    }
    if (node.op === 'Gather' && node.inputs[1] === tokens) {
      const found = publishedIn(graph.initializers.get(at(node.inputs, 0)));
      return found ? lookup(graph, node, found) : [node];
    }
    return [node];
  });
}

function product(graph: Graph, node: OnnxNode, matrix: Published, sums: Map<string, string>): OnnxNode[] {
  const { rows, columns, blocks } = matrix;
  const { bits, size, min } = blocks;
  const count = columns / size;
  const [x, output] = [at(node.inputs, 0), at(node.outputs, 0)];
  const levels = addLevels(graph, matrix);
  const scales = add(graph, matrix, 'scales', [rows * count], ({ scales }) => scales);
  const zeros = min
    ? [add(graph, matrix, 'zeros', [rows * zeroBytes(matrix)], (part) => packedZeros(part, matrix))]
    : [];
  const attributes = { K: columns, N: rows, bits, block_size: size, accuracy_level: ACCURACY };
  const inputs = [x, levels, scales, ...zeros];
  if (!min) return [makeNode('MatMulNBits', inputs, [output], attributes, MS)];
  const rest = add(graph, matrix, 'mins', [rows, count], (part) => restOf(part, matrix));
  const key = `${x}/${size}`;
  const nodes: OnnxNode[] = [];
  if (!sums.has(key)) {
    const [shape, last, cut] = [`assay/blocks/${count}x${size}`, 'assay/blocks/last', `${key}/blocks`];
    graph.initializers.set(shape, makeTensor(shape, [4], BigInt64Array.of(0n, 0n, BigInt(count), BigInt(size))));
    graph.initializers.set(last, makeTensor(last, [1], BigInt64Array.of(-1n)));
    nodes.push(makeNode('Reshape', [x, shape], [cut]));
    nodes.push(makeNode('ReduceSum', [cut, last], [`${key}/sums`], { keepdims: 0 }));
    sums.set(key, `${key}/sums`);
  }
  const [whole, part] = [`${output}/levels`, `${output}/mins`];
  nodes.push(makeNode('MatMulNBits', inputs, [whole], attributes, MS));
  nodes.push(makeNode('FusedMatMul', [sums.get(key) ?? '', rest], [part], { transB: 1 }, MS));
  nodes.push(makeNode('Add', [whole, part], [output]));
  return nodes;
}

/** Looks rows up in the levels that a product may read, too: `[rows, blocks, bytes of a block]`. */
function lookup(graph: Graph, node: OnnxNode, matrix: Published): OnnxNode[] {
  const { rows, columns, blocks } = matrix;
  const { bits, size, min } = blocks;
  const count = columns / size;
  const [ids, output] = [at(node.inputs, 1), at(node.outputs, 0)];
  const levels = addLevels(graph, matrix);
  const scales = add(graph, matrix, 'row_scales', [rows, count, 1], ({ scales }) => scales);
  const zeros = min
    ? [add(graph, matrix, 'row_zeros', [rows, count, 1], ({ scales }) => new Uint8Array(scales.length))]
    : [];
  const shape = 'assay/blocks/row';
  graph.initializers.set(shape, makeTensor(shape, [3], BigInt64Array.of(0n, 0n, BigInt(columns))));
  const attributes = { bits, block_size: size, gather_axis: 0, quantize_axis: 2 };
  const found = makeNode('GatherBlockQuantized', [levels, ids, scales, ...zeros], [`${output}/blocks`], attributes, MS);
  const nodes = [found];
  let cut = `${output}/blocks`;
  if (min) {
    const mins = add(graph, matrix, 'row_mins', [rows, count, 1], ({ mins }) => mins);
    nodes.push(makeNode('Gather', [mins, ids], [`${output}/mins`]));
    nodes.push(makeNode('Add', [cut, `${output}/mins`], [`${output}/whole`]));
    cut = `${output}/whole`;
  }
  return [...nodes, makeNode('Reshape', [cut, shape], [output])];
}

/** Scales and minima of all blocks of a matrix. */
type Part = Pick<ReturnType<MatrixBlocks['read']>, 'scales' | 'mins'>;

function addLevels(graph: Graph, matrix: Published): string {
  const { bits, size } = matrix.blocks;
  const dims = [matrix.rows, matrix.columns / size, (size * bits) / 8];
  return addTensor(graph, `${matrix.name}/levels`, DataType.uint8, dims, function* () {
    for (const { levels } of readParts(matrix)) yield bits === 8 ? levels : halves(levels);
  });
}

/** Adds a tensor that is computed from the scales and minima of a matrix, once. Returns its name. */
function add(
  graph: Graph,
  matrix: Published,
  part: string,
  dims: number[],
  of: (part: Part) => Uint8Array | Float32Array,
): string {
  const dataType = part.endsWith('zeros') ? DataType.uint8 : DataType.float;
  const prefix = part === 'mins' ? EXACT : '';
  return addTensor(graph, `${prefix}${matrix.name}/${part}`, dataType, dims, function* () {
    const piece = of(partOf(matrix));
    yield new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength);
  });
}

function addTensor(
  graph: Graph,
  name: string,
  dataType: number,
  dims: number[],
  pieces: () => Iterable<Uint8Array>,
): string {
  const length = dims.reduce((product, dim) => product * dim, dataType === DataType.uint8 ? 1 : 4);
  if (!graph.initializers.has(name)) graph.initializers.set(name, { name, dataType, dims, data: { length, pieces } });
  return name;
}

function* readParts({ rows, columns, blocks }: Published): Generator<ReturnType<MatrixBlocks['read']>> {
  const step = Math.max(1, Math.floor(WEIGHTS_AT_A_TIME / columns));
  for (let first = 0; first < rows; first += step) yield blocks.read(first, Math.min(step, rows - first));
}

/** The matrix whose scales and minima were read last: tensors of one matrix are written one after another. */
let recent: { blocks: MatrixBlocks; part: Part } | undefined;

function partOf(matrix: Published): Part {
  const { rows, columns, blocks } = matrix;
  if (recent?.blocks === blocks) return recent.part;
  const count = (rows * columns) / blocks.size;
  const part = { scales: new Float32Array(count), mins: new Float32Array(count) };
  let at = 0;
  for (const { scales, mins } of readParts(matrix)) {
    part.scales.set(scales, at);
    part.mins.set(mins, at);
    at += scales.length;
  }
  recent = { blocks, part };
  return part;
}

/** Packs two levels of 4 bits in a byte, the first in the low half. */
function halves(levels: Uint8Array): Uint8Array {
  const packed = new Uint8Array(levels.length / 2);
  for (let i = 0; i < packed.length; i++) packed[i] = (levels[2 * i] ?? 0) | ((levels[2 * i + 1] ?? 0) << 4);
  return packed;
}

function zeroBytes({ columns, blocks: { bits, size } }: Published): number {
  return Math.ceil(((columns / size) * bits) / 8);
}

/** Returns the level nearest to each block's zero. */
function zerosOf({ scales, mins }: Part, bits: 4 | 8): Uint8Array {
  const top = 2 ** bits - 1;
  return Uint8Array.from(scales, (scale, i) =>
    scale === 0 ? 0 : Math.max(0, Math.min(top, Math.round(-(mins[i] ?? 0) / scale))),
  );
}

function packedZeros(part: Part, matrix: Published): Uint8Array {
  const { bits, size } = matrix.blocks;
  const zeros = zerosOf(part, bits);
  if (bits === 8) return zeros;
  const [count, width] = [matrix.columns / size, zeroBytes(matrix)];
  const packed = new Uint8Array((zeros.length / count) * width);
  for (const [i, zero] of zeros.entries()) {
    const place = Math.floor(i / count) * width + ((i % count) >> 1);
    packed[place] = (packed[place] ?? 0) | (zero << (4 * ((i % count) & 1)));
  }
  return packed;
}

/** Returns what of each block's minimum its zero point does not express. */
function restOf(part: Part, { blocks: { bits } }: Published): Float32Array {
  const zeros = zerosOf(part, bits);
  return part.mins.map((min, i) => min + (zeros[i] ?? 0) * (part.scales[i] ?? 0));
}
