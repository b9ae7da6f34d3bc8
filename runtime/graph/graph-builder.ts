import { floatTensor, type StoredTensor } from '../checkpoint/weight-source.ts';
import {
  DataType,
  makeNode,
  makeTensor,
  type NewAttribute,
  type OnnxModel,
  type OnnxNode,
  type Tensor,
  type ValueInfo,
} from '../onnx/format/model.ts';
import { bytesField, varintField } from '../onnx/format/wire.ts';
import { LOGIT_ROWS } from '../onnx/layout.ts';

const MS = 'com.microsoft';
/** Version of the standard operators. */
const OPSET = 21;
/** Version of the file format, the newest that opset 21 needs. */
const IR_VERSION = 10;

/** Names the element type in which keys and values are stored between the runs of a graph for devices. */
export type KvType = 'float32' | 'float16';

/** Describes a value at which a graph for devices is cut: `width` elements for each token. */
export interface CutValue {
  name: string;
  width: number;
}

/**
 * Collects where a graph for devices is cut in three: a lookup, the layers, and a head. Such a graph has only operators
 * that compilers for NPUs accept (docs/devices.md, "Operators"), and any numbers of new and past cells.
 */
export class DeviceCuts {
  readonly kvType: KvType;
  /** Embeddings of the tokens, which the layers read. */
  readonly embeddings: CutValue[] = [];
  /** Rows of tables at the positions of the tokens, which the layers read. */
  readonly positional: CutValue[] = [];
  /** Inputs of the layers for additive masks, by the window of the layers that read them. */
  readonly masks: { name: string; window: number | null }[] = [];
  /** Values of all tokens that the layers return (`from`), and those of some tokens that the head reads. */
  readonly head: (CutValue & { from: string })[] = [];

  constructor(kvType: KvType) {
    this.kvType = kvType;
  }
}

/** Collects the nodes, weights, inputs and outputs of a graph. Methods that add a node return its output's name. */
export class GraphBuilder {
  /** Cuts of a graph for devices; null for other graphs. */
  readonly cuts: DeviceCuts | null;
  readonly #nodes: OnnxNode[] = [];
  readonly #initializers = new Map<string, Tensor>();
  readonly #inputs: ValueInfo[] = [];
  readonly #outputs: ValueInfo[] = [];

  constructor(cuts: DeviceCuts | null = null) {
    this.cuts = cuts;
  }

  /** Adds a node of a standard operator. */
  add(op: string, inputs: string[], attributes: Record<string, NewAttribute> = {}): string {
    return this.#node(op, inputs, [this.#fresh()], attributes, '');
  }

  /** Adds a node of an operator of onnxruntime's own (docs/ContribOperators.md). */
  contrib(
    op: string,
    inputs: string[],
    attributes: Record<string, NewAttribute> = {},
    outputs = [this.#fresh()],
  ): string {
    return this.#node(op, inputs, outputs, attributes, MS);
  }

  /** Adds a node of a standard operator with several outputs of these names. */
  nodes(op: string, inputs: string[], outputs: string[], attributes: Record<string, NewAttribute> = {}): void {
    this.#node(op, inputs, outputs, attributes, '');
  }

  /** Adds a node that splits the last axis into parts of these sizes; returns the names of the parts. */
  split(input: string, sizes: readonly number[]): string[] {
    const parts = sizes.map(() => this.#fresh());
    this.#node('Split', [input, this.integers(...sizes)], parts, { axis: -1 }, '');
    return parts;
  }

  /** Adds a new name for a value that no node has made yet. */
  name(): string {
    return this.#fresh();
  }

  /** Multiplies a value by a constant; returns the value itself for 1. */
  scaled(input: string, factor: number): string {
    return factor === 1 ? input : this.add('Mul', [input, this.float(factor)]);
  }

  /** Bounds a value softly: `cap * tanh(x / cap)`. */
  capped(input: string, cap: number): string {
    return this.scaled(this.add('Tanh', [this.scaled(input, 1 / cap)]), cap);
  }

  /** Takes the states of tokens at the positions of the input `marker_pos`: `[rows, markers, …]`. */
  atMarkers(states: string): string {
    const markers = this.input('marker_pos', DataType.int64, ['batch_size', 'markers']);
    return this.add('GatherND', [states, this.add('Unsqueeze', [markers, this.integers(-1)])], { batch_dims: 1 });
  }

  /** Takes the rows of a value `[batch, rows, width]` whose logits are computed. */
  atLogitRows(value: string, width: number): string {
    if (!this.cuts)
      return this.add('Gather', [value, this.input(LOGIT_ROWS, DataType.int64, ['read_rows'])], { axis: 1 });
    const name = `${value}/rows`;
    this.cuts.head.push({ name, from: value, width });
    return name;
  }

  /** Adds a weight once, with the name that it has in the checkpoint. */
  weight(stored: StoredTensor, prefix = ''): string {
    return this.tensor({ ...floatTensor(stored), name: `${prefix}${stored.name}` });
  }

  /** Adds a tensor, unless there is one of its name. */
  tensor(tensor: Tensor): string {
    if (!this.#initializers.has(tensor.name)) this.#initializers.set(tensor.name, tensor);
    return tensor.name;
  }

  /**
   * Adds a tensor of 32-bit floats that is computed piece by piece when it is written, so that it need not be in memory
   * as a whole.
   */
  computed(name: string, dims: number[], pieces: () => Iterable<Float32Array>): string {
    const length = dims.reduce((product, dim) => product * dim, 4);
    const bytes = function* () {
      for (const piece of pieces()) yield new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength);
    };
    return this.tensor({ name, dataType: DataType.float, dims, data: { length, pieces: bytes } });
  }

  /** Adds a constant list of integers. */
  integers(...values: number[]): string {
    return this.tensor(makeTensor(`integers/${values.join(',')}`, [values.length], BigInt64Array.from(values, BigInt)));
  }

  /** Adds a constant integer without dimensions. */
  integer(value: number): string {
    return this.tensor(makeTensor(`integer/${value}`, [], BigInt64Array.of(BigInt(value))));
  }

  /** Adds a constant 32-bit float without dimensions. */
  float(value: number): string {
    return this.tensor(makeTensor(`float/${value}`, [], Float32Array.of(value)));
  }

  input(name: string, dataType: number, dims: ValueInfo['dims']): string {
    if (!this.#inputs.some((input) => input.name === name)) this.#inputs.push({ name, dataType, dims });
    return name;
  }

  /** Makes a value an output of the graph, with another name unless it has that name already. */
  output(name: string, dims: ValueInfo['dims'], value = name): void {
    const maker = this.#nodes.find((node) => node.outputs.includes(value));
    if (maker) maker.outputs = maker.outputs.map((output) => (output === value ? name : output));
    this.#outputs.push({ name, dataType: DataType.float, dims });
  }

  /** Returns the graph as a model. Outputs are in the order in which they were added. */
  model(name: string): OnnxModel {
    const graph = {
      nodes: this.#nodes,
      initializers: this.#initializers,
      inputs: this.#inputs,
      outputs: this.#outputs,
      rest: [bytesField(2, name)],
    };
    const opsets = new Map([
      ['', OPSET],
      [MS, 1],
    ]);
    return { opsets, graph, rest: [varintField(1, IR_VERSION), bytesField(2, 'assay')] };
  }

  #fresh(): string {
    return `value${this.#names++}`;
  }

  #names = 0;

  #node(
    op: string,
    inputs: string[],
    outputs: string[],
    attributes: Record<string, NewAttribute>,
    domain: string,
  ): string {
    // Later rewrites of the graph use names that begin with "assay/" for nodes of their own.
    this.#nodes.push({ ...makeNode(op, inputs, outputs, attributes, domain), name: `${op}/${outputs[0]}` });
    return outputs[0] ?? '';
  }
}
