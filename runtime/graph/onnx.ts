import type { StoredTensor, WeightSource } from '../checkpoint/weight-source.ts';
import { type BlockMatrix, blockMatrix, blockRows } from '../onnx/format/block-matrix.ts';
import {
  attribute,
  DataType,
  dataLength,
  elementCount,
  type Graph,
  makeNode,
  makeTensor,
  type OnnxNode,
  type Tensor,
} from '../onnx/format/model.ts';
import { constantOf } from '../onnx/format/read-model.ts';
import {
  computedRows,
  openData,
  PIECE_BYTES,
  readAll,
  readFloats,
  readSome,
  readSomeFloats,
} from '../onnx/format/tensor-data.ts';
import { isHalfType } from '../onnx/to-float32.ts';
import { type Architecture, type Experts, type Layer, NAMES, type Names } from './architecture.ts';
import { Refused } from './config-keys.ts';
import { operatorAttributes } from './experts.ts';
import type { Rotary } from './rotary.ts';

/** Values of MatMulBnb4's levels, as factors of a block's largest (onnxruntime, `blockwise_quant_block_bnb4.h`). */
const FP4_HALF = [0, 0.005208333333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25];
const FP4 = [...FP4_HALF, ...FP4_HALF.map((value) => -value)];
const NF4 = [
  ...[-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635],
  ...[-0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634],
  ...[0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1],
];

const NORMS = new Set(['SimplifiedLayerNormalization', 'SkipSimplifiedLayerNormalization', 'RMSNormalization']);
/** Operators with weights in forms that are not read. */
const UNREAD = new Set(['DynamicQuantizeMatMul', 'MatMulIntegerToFloat', 'QLinearMatMul']);

/** Elements of two matrices that are compared to find out whether they are one. */
const COMPARED = 4096;

/** Other names of weights: those of the onnxruntime-genai model builder, which has one set for all families. */
const OTHER_NAMES: Partial<Record<keyof Names, string>> = {
  mixerNorm: 'operator_layernorm',
  innerNorm: 'ffn_layernorm',
};
/** Names of the builder's for the experts of a layer, which are in one operator. */
const EXPERTS = { router: 'moe.router', gateUp: 'moe.experts.gate_up_proj', down: 'moe.experts.down_proj' };
/** Attributes of this operator that say how its matrices are stored. */
const STORAGE = ['expert_weight_bits', 'block_size'];
const JOINT = 'self_attn.qkv_proj';
const GATE_UP = 'mlp.gate_up_proj';
/** Matches mobius' name of the queries', keys' and values' matrices in one. */
const CONCATENATED = /self_attn\.q_proj\.weight__.*k_proj\.weight__.*v_proj\.weight__axis_0__concat_t$/u;
/** Matches a name that says which part of a model a weight is of. */
const MODULE = /^(?:model\.|lm_head\b)/u;

/**
 * Finds the weights of a published graph by their names, or by those of the nodes that read them, for the graph that is
 * written from `architecture`. Reads no weights, but to compare some of two matrices, and biases of experts. Returns
 * them with the architecture, whose names and joint matrices are then those of the graph. Throws `Refused` if a product
 * is with weights that have no name or no known form, or experts compute something else.
 */
export function onnxWeights(
  graph: Graph,
  architecture: Architecture,
): { architecture: Architecture; weights: WeightSource } {
  const found = new Reader(graph, architecture.layers).weights();
  const last = `layers.${architecture.layers.length}.final_norm_layernorm`;
  rename(found, `model.${last}.weight`, `model.${architecture.names.finalNorm}.weight`);
  const table = found.get(`model.${architecture.names.embedding}.weight`);
  const head = found.get('lm_head.weight');
  if (architecture.tied && table && head && areOne(table, head)) {
    found.delete('lm_head.weight');
    if (head.published && 'blocks' in head.published) found.set(table.name, { ...table, published: head.published });
  }
  const names = { ...architecture.names, ...namesIn(found, architecture) };
  const rotated = hasHalfTables(graph) ? withHalfTables(architecture.layers) : architecture.layers;
  const layers = rotated.map((layer, index) =>
    found.has(`model.layers.${index}.${EXPERTS.gateUp}`) ? withOperator(layer) : layer,
  );
  // Exporters store the weights of norms as they are multiplied.
  return { architecture: { ...architecture, layers, normOffset: 0, names }, weights: found };
}

function hasHalfTables({ nodes, initializers }: Graph): boolean {
  return nodes.some(
    ({ op, inputs }) => op === 'GroupQueryAttention' && isHalfType(initializers.get(inputs[7] ?? '')?.dataType ?? 0),
  );
}

function withHalfTables(layers: readonly Layer[]): Layer[] {
  const tables = new Map<Rotary, Rotary>();
  return layers.map((layer) => {
    const { mixer } = layer;
    if (mixer.kind !== 'attention' || !mixer.rotary) return layer;
    const rotary = tables.get(mixer.rotary) ?? { ...mixer.rotary, half: true };
    tables.set(mixer.rotary, rotary);
    return { ...layer, mixer: { ...mixer, rotary } };
  });
}

/** Returns a layer whose experts are in one operator. The bias by which they are chosen has the router's name. */
function withOperator({ experts, ...layer }: Layer): Layer {
  if (!experts) return { ...layer, experts };
  const { names, routing } = experts;
  const bias = routing.bias && `${EXPERTS.router}.bias`;
  const named = { routing: { ...routing, bias }, names: { ...names, ...EXPERTS } };
  return { ...layer, experts: { ...experts, ...named, layout: 'operator' } };
}

function rename(found: Map<string, StoredTensor>, from: string, to: string): void {
  const stored = found.get(from);
  if (!stored || found.has(to)) return;
  found.delete(from);
  found.set(to, { ...stored, name: to });
}

/** Returns the names that weights of layers have, where they are not those of the family. */
function namesIn(found: WeightSource, { names }: Architecture): Partial<Names> {
  const paths = new Set([...found.keys()].map((name) => /^model\.layers\.\d+\.(.+)\.weight$/u.exec(name)?.[1]));
  const chosen: Partial<Names> = {};
  for (const [role, own] of Object.entries(names) as [keyof Names, string | null][]) {
    if (own === null || role === 'embedding' || role === 'finalNorm') continue;
    const name = [own, NAMES[role], OTHER_NAMES[role]].find((one) => one && paths.has(one));
    if (name) chosen[role] = name;
  }
  return { ...chosen, joint: paths.has(JOINT) ? JOINT : null, gateUp: gateUpIn(paths, names) };
}

function gateUpIn(paths: ReadonlySet<string | undefined>, { gateUp }: Names): string | null {
  return [gateUp, GATE_UP].find((name) => name && paths.has(name)) ?? null;
}

/** Tells whether the embeddings and the output head are the same matrix: in one tensor, or in a copy of it. */
function areOne(table: StoredTensor, head: StoredTensor): boolean {
  const [one, other] = [table, head].map(
    ({ published }) => published && ('blocks' in published ? published.blocks.levels.data : published.inputsFirst.data),
  );
  if (one && one === other) return true;
  const [rows = 0, columns = 0] = table.dims;
  if (head.dims.join() !== table.dims.join()) return false;
  const [tables, heads] = [elementsOf(table), elementsOf(head)];
  // Odd, so that the elements are of all columns.
  const step = Math.floor((rows * columns) / COMPARED) | 1;
  try {
    if (!tables || !heads) return false;
    for (let at = 0; at < rows * columns; at += step) {
      const [row, column] = [Math.floor(at / columns), at % columns];
      if (tables.bits(row, column) !== heads.bits(row, column)) return false;
    }
    return true;
  } finally {
    tables?.close();
    heads?.close();
  }
}

/** Opens a matrix of stored floats to compare single elements; undefined for one in another form. */
function elementsOf({
  dims,
  data,
  dtype,
  published,
}: StoredTensor): { bits(row: number, column: number): string; close(): void } | undefined {
  const tensor = published && 'inputsFirst' in published ? published.inputsFirst : undefined;
  const bytes = tensor ? tensor.data : published ? undefined : data;
  if (!bytes || 'pieces' in bytes) return undefined;
  const width = (tensor ? isHalfType(tensor.dataType) : dtype !== 'F32') ? 2 : 4;
  const [rows = 0, columns = 0] = dims;
  const reader = openData(bytes);
  return {
    bits(row, column) {
      const at = (tensor ? column * rows + row : row * columns + column) * width;
      return reader.read(at, at + width).join();
    },
    close: reader.close,
  };
}

/** Holds a constant that a node reads, and whether the node reads it transposed. */
interface Constant {
  tensor: Tensor;
  transposed: boolean;
}

class Reader {
  readonly #graph: Graph;
  readonly #layers: readonly Layer[];
  readonly #producers: ReadonlyMap<string, OnnxNode>;
  readonly #found = new Map<string, StoredTensor>();
  /** Initializer of each name that was found, to tell one weight that is read twice from two of one name. */
  readonly #origins = new Map<string, string>();
  readonly #used = new Set<string>();
  /** Scales of matrices of integers, by which nodes multiply a product. */
  readonly #scales: ReadonlySet<string>;

  constructor(graph: Graph, layers: readonly Layer[]) {
    this.#graph = graph;
    this.#layers = layers;
    const integers = graph.nodes.filter(({ op }) => op === 'MatMulInteger');
    this.#scales = new Set(integers.map(({ inputs }) => (inputs[1] ?? '').replace(/_quantized$/u, '_scale')));
    this.#producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node])));
  }

  weights(): Map<string, StoredTensor> {
    for (const node of this.#graph.nodes) this.#read(node);
    // What is left has the name of a module, and is read in another way: a kernel of a convolution, or sinks.
    for (const tensor of this.#graph.initializers.values()) {
      if (this.#used.has(tensor.name) || !/^(?:model\.)?layers\.\d+\./u.test(tensor.name)) continue;
      if (!isFloat(tensor) || elementCount(tensor) < 2) continue;
      const name = canonical(tensor.name);
      if (!this.#found.has(name)) this.#found.set(name, vectorOf(name, tensor));
    }
    return this.#found;
  }

  #read(node: OnnxNode): void {
    const [first = '', second = '', third = ''] = node.inputs;
    if (UNREAD.has(node.op)) throw new Refused(`its graph has ${node.op}, whose weights are not read`);
    if (node.op === 'MatMul') this.#matrix(node, second);
    if (node.op === 'Gemm') {
      this.#matrix(node, second, attribute(node, 'transB') === 1);
      this.#vector(node, third, 'bias');
    }
    if (node.op === 'MatMulNBits') this.#blocks(node);
    if (node.op === 'MatMulBnb4') this.#bnb4(node);
    if (node.op === 'MatMulInteger') this.#integers(node, second);
    if (node.op === 'MoE' || node.op === 'QMoE') this.#experts(node);
    if (node.op === 'Gather') this.#table(node);
    if (node.op === 'GatherBlockQuantized') this.#blockTable(node);
    if (NORMS.has(node.op)) this.#vector(node, node.op.startsWith('Skip') ? third : second, 'weight');
    if (node.op === 'Mul' || node.op === 'Add') {
      for (const input of [first, second]) this.#vector(node, input, node.op === 'Mul' ? 'weight' : 'bias');
    }
  }

  #matrix(node: OnnxNode, input: string, outputsFirst = false): void {
    const found = this.#constant(input);
    if (found?.tensor.dims.length !== 2) return;
    const { tensor, transposed } = found;
    const name = `${this.#pathOf(node, tensor.name)}.weight`;
    this.#give(name, tensor, transposed !== outputsFirst ? vectorOf(name, tensor) : inputsFirst(name, tensor));
  }

  #blocks(node: OnnxNode): void {
    const blocks = blockMatrix(node, this.#graph);
    if (!blocks) throw new Refused(`its graph has the weights of ${node.name || node.op} in a form that is not read`);
    const path = this.#pathOf(node, blocks.levels.name);
    const name = `${path}.weight`;
    this.#give(name, blocks.levels, inBlocks(name, blocks, attribute(node, 'accuracy_level')));
    for (const tensor of [blocks.scales, blocks.zeros]) if (tensor) this.#used.add(tensor.name);
    if (node.inputs[5]) this.#vector(node, node.inputs[5], 'bias');
  }

  #bnb4(node: OnnxNode): void {
    const [levels, scales] = node.inputs.slice(1).map((input) => this.#graph.initializers.get(input));
    const [columns, rows, size, type] = ['K', 'N', 'block_size', 'quant_type'].map((name) => attribute(node, name));
    const table = type === 1 ? NF4 : FP4;
    const known =
      [columns, rows, size].every((one) => typeof one === 'number' && one > 0) && (type === 0 || type === 1);
    const count = Number(columns) * Number(rows);
    const whole =
      levels &&
      scales &&
      2 * elementCount(levels) === count &&
      elementCount(scales) === Math.ceil(count / Number(size));
    if (!known || !whole || Number(columns) % 2 !== 0) {
      throw new Refused(`its graph has the weights of ${node.name} in a form that is not read`);
    }
    const [width, height, block] = [Number(columns), Number(rows), Number(size)];
    const name = `${this.#pathOf(node, levels.name)}.weight`;
    const data = computedRows(height, width, (first, count) => {
      const [start, end] = [first * width, (first + count) * width];
      const bytes = readSome(levels.data, start / 2, end / 2);
      const firstBlock = Math.floor(start / block);
      const factors = readSomeFloats(scales, firstBlock, Math.ceil(end / block) - firstBlock);
      return Float32Array.from({ length: end - start }, (_, i) => {
        const byte = bytes[i >> 1] ?? 0;
        const level = i % 2 === 0 ? byte >> 4 : byte & 15;
        return (table[level] ?? 0) * (factors[Math.floor((start + i) / block) - firstBlock] ?? 0);
      });
    });
    this.#give(name, levels, { name, dtype: 'F32', dims: [height, width], data });
  }

  /** Reads the 8 bits of onnxruntime's dynamic quantisation, whose scales are of the matrix or of each output. */
  #integers(node: OnnxNode, input: string): void {
    const levels = this.#graph.initializers.get(input);
    const name = `${this.#pathOf(node, input.replace(/_quantized$/u, ''))}.weight`;
    const matrix = levels?.dims.length === 2 ? this.#dequantised(name, levels) : undefined;
    if (!levels || !matrix) throw new Refused(`its graph has the weights of ${node.name} in a form that is not read`);
    this.#give(name, levels, inputsFirst(name, matrix));
  }

  /** Returns a matrix in 8 bits as one of floats, by the scales and zero points that have its name. */
  #dequantised(name: string, levels: Tensor): Tensor | undefined {
    const base = /^(.*)_quantized$/u.exec(levels.name)?.[1];
    const [scale, zero] = ['_scale', '_zero_point'].map((part) => this.#graph.initializers.get(`${base}${part}`));
    if (!base || !scale) return undefined;
    return dequantised(name, { levels, scale, zero, axis: levels.dims.length - 1 });
  }

  /** Reads the matrices of all experts of a layer (onnxruntime, docs/ContribOperators.md, MoE and QMoE). */
  #experts(node: OnnxNode): void {
    const inBlocks = node.op === 'QMoE';
    const path = this.#pathOf(node, '');
    const experts = this.#layers[Number(/^model\.layers\.(\d+)\.moe$/u.exec(path)?.[1])]?.experts;
    const unread = inBlocks ? [8, 9, 10, 13, 14] : [6, 7];
    if (!experts || !computes(node, experts) || unread.some((index) => node.inputs[index])) {
      throw new Refused(`its graph has ${node.op} with other numbers than its configuration describes`);
    }
    for (const [side, part] of ['gate_up_proj', 'down_proj'].entries()) {
      const name = `${path}.experts.${part}`;
      const first = 2 + side * (inBlocks ? 3 : 2);
      const [weight = '', scale = ''] = node.inputs.slice(first);
      const tensor = this.#graph.initializers.get(weight);
      const stored = inBlocks
        ? this.#blocksOfExperts(name, node, [weight, scale, node.inputs[11 + side] ?? ''])
        : tensor && isFloat(tensor) && vectorOf(name, tensor);
      const offset = node.inputs[first + (inBlocks ? 2 : 1)];
      const bias = this.#graph.initializers.get(offset ?? '');
      if (!tensor || !stored || (offset && !(bias && isFloat(bias)))) {
        throw new Refused(`its graph has the weights of ${node.name} in a form that is not read`);
      }
      this.#give(name, tensor, stored);
      if (!bias) continue;
      // The builder gives experts without biases zeros.
      if (experts.biased || readFloats(bias).some((value) => value !== 0)) {
        this.#give(`${name}_bias`, bias, vectorOf(`${name}_bias`, bias));
      }
      this.#used.add(bias.name);
    }
  }

  #blocksOfExperts(name: string, node: OnnxNode, inputs: readonly string[]): StoredTensor | undefined {
    const bits = Number(attribute(node, 'expert_weight_bits') ?? 4);
    const [count = 0, rows = 0, bytes = 0] = this.#graph.initializers.get(inputs[0] ?? '')?.dims ?? [];
    const columns = (bytes * 8) / bits;
    // Without a block size, or with one beyond its end, a row has one scale.
    const size = Math.min(Number(attribute(node, 'block_size')) || columns, columns);
    // Zero points of whole rows are packed across rows.
    if (inputs[2] && size >= columns) return undefined;
    const sizes = { K: columns, N: count * rows, bits, block_size: size };
    const blocks = blockMatrix(makeNode('MatMulNBits', ['', ...inputs], [], sizes), this.#graph);
    for (const input of inputs) this.#used.add(input);
    return blocks && { ...inBlocks(name, blocks), dims: [count, rows, columns] };
  }

  #table(node: OnnxNode): void {
    const [data = '', ids = ''] = node.inputs;
    const found = this.#constant(data) ?? this.#integerTable(data);
    if (found?.tensor.dims.length !== 2) return;
    const path = this.#pathOf(node, found.tensor.name);
    if (!path.includes('embed_tokens') && ids !== 'input_ids') return;
    const name = `${path}.weight`;
    const { tensor, transposed } = found;
    this.#give(name, tensor, transposed ? inputsFirst(name, tensor) : vectorOf(name, tensor));
  }

  #integerTable(data: string): Constant | undefined {
    const levels = this.#graph.initializers.get(data);
    if (!levels || (levels.dataType !== DataType.uint8 && levels.dataType !== DataType.int8)) return undefined;
    const tensor = this.#dequantised(data, levels);
    return tensor && { tensor, transposed: false };
  }

  #blockTable(node: OnnxNode): void {
    const [data = '', , scale = '', zero = ''] = node.inputs;
    const reshaped = this.#producers.get(data);
    const { initializers } = this.#graph;
    const stored = initializers.get(reshaped?.op === 'Reshape' ? (reshaped.inputs[0] ?? '') : data);
    const scales = initializers.get(scale);
    const size = attribute(node, 'block_size');
    const stated = stored?.dataType === DataType.uint8 ? (attribute(node, 'bits') ?? 4) : 4;
    const bits = stated === 8 ? 8 : 4;
    const [rows = 0, blocks = 0] = scales?.dims ?? [];
    const columns = blocks * Number(size);
    const levels = stored && asLevels(stored, (rows * columns * bits) / 8);
    const zeros = zero ? initializers.get(zero) : zeroOf(stored, rows, blocks);
    const zeroLevels = zeros && asLevels(zeros, rows * Math.ceil((blocks * bits) / 8));
    const known = scales?.dims.length === 2 && attribute(node, 'quantize_axis') === 1 && stated === bits;
    if (!stored || !levels || !scales || !known || (zero && !zeroLevels)) {
      throw new Refused(`its graph has the weights of ${node.name || node.op} in a form that is not read`);
    }
    const name = `${this.#pathOf(node, stored.name)}.weight`;
    const matrix: BlockMatrix = { rows, columns, bits, size: Number(size), levels, scales };
    this.#give(name, stored, inBlocks(name, { ...matrix, ...(zeroLevels && { zeros: zeroLevels }) }));
  }

  #vector(node: OnnxNode, input: string, kind: 'weight' | 'bias'): void {
    const tensor = input ? this.#constant(input)?.tensor : undefined;
    if (tensor?.dims.length !== 1 || this.#scales.has(tensor.name)) return;
    const isFactor = tensor.name.endsWith('.layer_scalar');
    if (elementCount(tensor) < 2 && !isFactor) return;
    const name = isFactor ? canonical(tensor.name) : `${this.#pathOf(node, tensor.name)}.${kind}`;
    this.#give(name, tensor, vectorOf(name, tensor));
  }

  #give(name: string, { name: origin }: Tensor, stored: StoredTensor): void {
    const other = this.#origins.get(name);
    if (other !== undefined && other !== origin) throw new Refused(`its graph has two weights called "${name}"`);
    this.#origins.set(name, origin);
    this.#used.add(origin);
    this.#found.set(name, stored);
  }

  /** Returns the float tensor that a value is, directly or through nodes that do not change its numbers. */
  #constant(name: string, depth = 0): Constant | undefined {
    const direct = this.#graph.initializers.get(name);
    if (direct) return isFloat(direct) ? { tensor: direct, transposed: false } : undefined;
    const node = this.#producers.get(name);
    if (!node || depth > 4) return undefined;
    const [input = ''] = node.inputs;
    switch (node.op) {
      case 'Constant': {
        const tensor = constantOf(node);
        return tensor && isFloat(tensor) ? { tensor: { ...tensor, name }, transposed: false } : undefined;
      }
      case 'Identity':
      case 'Cast':
        return this.#constant(input, depth + 1);
      case 'Transpose': {
        const inner = this.#constant(input, depth + 1);
        const order = attribute(node, 'perm');
        const swaps = order === undefined || (Array.isArray(order) && order.join() === '1,0');
        return inner && swaps ? { ...inner, transposed: !inner.transposed } : undefined;
      }
      case 'DequantizeLinear': {
        const [levels, scale, zero] = node.inputs.map((one) => this.#graph.initializers.get(one));
        const axis = Number(attribute(node, 'axis') ?? 1);
        const blocked = Number(attribute(node, 'block_size') ?? 0) > 0;
        const tensor =
          levels && scale && !blocked ? dequantised(levels.name, { levels, scale, zero, axis }) : undefined;
        return tensor && { tensor, transposed: false };
      }
    }
    return undefined;
  }

  /** Returns the path of the module that a node computes; the one that its tensor names where the node has none. */
  #pathOf(node: OnnxNode, tensor: string): string {
    const scope = node.name.replace(/^\//u, '').split('/').slice(0, -1).join('.');
    if (MODULE.test(scope) && scope !== 'model') return canonical(scope);
    if (CONCATENATED.test(tensor)) return canonical(tensor.replace(CONCATENATED, JOINT));
    if (MODULE.test(tensor))
      return canonical(tensor).replace(/\.(?:layernorm\.)?(?:MatMul\.|Add\.)?(?:weight|bias)\w*$/u, '');
    return `nameless ${node.name || tensor}`;
  }
}

/** Returns the name of a module or weight as transformers has it. */
function canonical(name: string): string {
  const inModel = /^(?:model\.|lm_head\b)/u.test(name) ? name : `model.${name}`;
  return inModel.replace('.attn.', '.self_attn.');
}

/** Tells whether an operator computes what a layer's experts are described to do. */
function computes(node: OnnxNode, experts: Experts): boolean {
  const own = makeNode(node.op, [], [], operatorAttributes(experts));
  const names = new Set([...own.attributes.keys(), ...node.attributes.keys()]);
  const value = (one: OnnxNode, name: string) => attribute(one, name) ?? 0;
  return [...names].every((name) => STORAGE.includes(name) || value(node, name) === value(own, name));
}

const isFloat = ({ dataType }: Tensor): boolean => dataType === DataType.float || isHalfType(dataType);

/** Returns a tensor whose dimensions are those of the checkpoint. */
function vectorOf(name: string, { dims, dataType, data }: Tensor): StoredTensor {
  const dtype = dataType === DataType.float ? 'F32' : dataType === DataType.float16 ? 'F16' : 'BF16';
  return { name, dtype, dims, data };
}

/** Returns a matrix that is stored as `[inputs, outputs]`. */
function inputsFirst(name: string, tensor: Tensor): StoredTensor {
  const [inputs = 0, outputs = 0] = tensor.dims;
  const length = inputs * outputs * 4;
  const data = {
    length,
    *pieces() {
      const whole = readFloats(tensor);
      const step = Math.max(1, Math.floor(PIECE_BYTES / (inputs * 4)));
      for (let first = 0; first < outputs; first += step) {
        const count = Math.min(step, outputs - first);
        const part = new Float32Array(count * inputs);
        for (let k = 0; k < inputs; k++) {
          for (let row = 0; row < count; row++) part[row * inputs + k] = whole[k * outputs + first + row] ?? 0;
        }
        yield new Uint8Array(part.buffer);
      }
    },
  };
  return { name, dtype: 'F32', dims: [outputs, inputs], data, published: { inputsFirst: { ...tensor, name } } };
}

function inBlocks(name: string, blocks: BlockMatrix, accuracy?: unknown): StoredTensor {
  const { rows, columns, levels, scales, zeros } = blocks;
  const data = computedRows(rows, columns, (first, count) => blockRows(blocks, first, count));
  // Names of the file could be those of other parts of the graph.
  const own = {
    ...blocks,
    levels: { ...levels, name: `${name}/levels` },
    scales: { ...scales, name: `${name}/scales` },
    ...(zeros ? { zeros: { ...zeros, name: `${name}/zeros` } } : {}),
  };
  const level = typeof accuracy === 'number' ? { accuracy } : {};
  return { name, dtype: 'F32', dims: [rows, columns], data, published: { blocks: own, ...level } };
}

/** Returns levels of 4 or 8 bits as bytes, in which zero is the middle of signed ones; undefined for another size. */
function asLevels(tensor: Tensor, length: number): Tensor | undefined {
  const { dataType, data } = tensor;
  if (dataLength(data) !== length) return undefined;
  if (dataType === DataType.uint8) return tensor;
  const bytes = { ...tensor, dataType: DataType.uint8, dims: [length] };
  if (dataType === DataType.uint4) return bytes;
  if (dataType !== DataType.int4) return undefined;
  const read = (start: number, end: number) => readSome(data, start, end).map((both) => both ^ 0x88);
  function* pieces(): Generator<Uint8Array> {
    for (let at = 0; at < length; at += PIECE_BYTES) yield read(at, Math.min(length, at + PIECE_BYTES));
  }
  return { ...bytes, data: { length, pieces, read } };
}

/** Returns the zero points of unsigned levels of 4 bits without such: all 0. Others have theirs in the middle. */
function zeroOf(levels: Tensor | undefined, rows: number, blocks: number): Tensor | undefined {
  if (levels?.dataType !== DataType.uint4) return undefined;
  const width = Math.ceil(blocks / 2);
  return makeTensor('zeros', [rows, width], new Uint8Array(rows * width));
}

interface Quantised {
  levels: Tensor;
  scale: Tensor;
  zero: Tensor | undefined;
  /** Axis whose elements have a scale each, if there are several. */
  axis: number;
}

/** Returns a matrix of 8-bit levels as floats, which are computed when they are read; undefined for another form. */
function dequantised(name: string, { levels, scale, zero, axis }: Quantised): Tensor | undefined {
  const [rows = 0, columns = 0] = levels.dims;
  const count = elementCount(scale);
  const ofRows = axis === 0 || axis === -2;
  const fits = count === 1 || count === (ofRows ? rows : columns);
  const signed = levels.dataType === DataType.int8;
  if (levels.dims.length !== 2 || !fits || !isFloat(scale) || (!signed && levels.dataType !== DataType.uint8))
    return undefined;
  if (zero && (zero.dataType !== levels.dataType || elementCount(zero) !== count)) return undefined;
  const data = computedRows(rows, columns, (first, many) => {
    const bytes = readSome(levels.data, first * columns, (first + many) * columns);
    const integers = signed ? new Int8Array(bytes.buffer) : bytes;
    const scales = readFloats(scale);
    const zeroBytes = zero && readAll(zero);
    const zeros = zeroBytes && signed ? new Int8Array(zeroBytes.buffer) : zeroBytes;
    const values = new Float32Array(integers.length);
    for (let i = 0; i < values.length; i++) {
      const place = count === 1 ? 0 : ofRows ? first + Math.floor(i / columns) : i % columns;
      values[i] = ((integers[i] ?? 0) - (zeros?.[place] ?? 0)) * (scales[place] ?? 0);
    }
    return values;
  });
  return { name, dataType: DataType.float, dims: levels.dims, data };
}
