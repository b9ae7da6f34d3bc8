import {
  bytesField,
  encodeFields,
  fieldsOf,
  floatField,
  varint,
  varintField,
  varints,
  type WireField,
  wireText,
} from './wire.ts';

/**
 * Holds a parsed ONNX model (onnx.proto, IR version 3 to 13). `rest` contains the fields that are not parsed, so that
 * writing the model back loses nothing.
 */
export interface OnnxModel {
  opsets: Map<string, number>;
  graph: Graph;
  rest: WireField[];
}

export interface Graph {
  nodes: OnnxNode[];
  initializers: Map<string, Tensor>;
  inputs: ValueInfo[];
  outputs: ValueInfo[];
  /**
   * Name, documentation and metadata. Shapes of intermediate values (`value_info`) are dropped, because rewriting the
   * graph makes them wrong.
   */
  rest: WireField[];
}

export interface OnnxNode {
  name: string;
  op: string;
  /** Domain of the operator; empty for standard ONNX operators. */
  domain: string;
  /** Names of the inputs; empty for an omitted input. */
  inputs: string[];
  outputs: string[];
  attributes: Map<string, Attribute>;
  rest: WireField[];
}

/** Holds the encoded fields of an attribute. The function `attribute` reads the common kinds. */
export type Attribute = readonly WireField[];

/** Element types (`TensorProto.DataType`) that language models use. */
export const DataType = {
  float: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  double: 11,
  bfloat16: 16,
  uint4: 21,
  int4: 22,
} as const;

const BYTES: Record<number, number> = {
  ...{ 1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 16: 2 },
  ...{ [DataType.uint4]: 0.5, [DataType.int4]: 0.5 },
};

export function elementCount({ dims }: Pick<Tensor, 'dims'>): number {
  return dims.reduce((product, dim) => product * dim, 1);
}

/**
 * Returns the number of bytes of one element, half a one for 4 bits; undefined for strings and other types without a
 * fixed size.
 */
export function elementBytes(dataType: number): number | undefined {
  return BYTES[dataType];
}

export interface Tensor {
  name: string;
  dataType: number;
  dims: number[];
  data: TensorData;
}

/**
 * Holds the little-endian bytes of a tensor: in memory, in a file, or computed piece by piece when they are written.
 */
export type TensorData = { bytes: Uint8Array } | { file: string; offset: number; length: number } | ComputedBytes;

export interface ComputedBytes {
  length: number;
  /** Yields the bytes in order, `length` bytes in all. */
  pieces(): Iterable<Uint8Array>;
  /** Computes the bytes from `start` to before `end`, at borders of elements. Absent: all must be computed. */
  read?(start: number, end: number): Uint8Array<ArrayBuffer>;
  /** The same matrix in blocks, if it was published so. */
  blocks?: MatrixBlocks;
}

/** Describes a matrix whose rows are cut into blocks: a weight is `(level - zero) * scale + min`. */
export interface MatrixBlocks {
  /** Bits of a level. */
  bits: 4 | 8;
  /** Number of weights in a block. */
  size: number;
  /** Level that stands for zero; 0 if blocks have a minimum. */
  zero: number;
  /** True if blocks have a minimum. */
  min: boolean;
  /** Reads `count` rows from the row `first` on, one level a byte. */
  read(first: number, count: number): { levels: Uint8Array; scales: Float32Array; mins: Float32Array };
}

/** Returns the number of bytes of a tensor's data. */
export function dataLength(data: TensorData): number {
  return 'bytes' in data ? data.bytes.length : data.length;
}

export interface ValueInfo {
  name: string;
  /** Element type; 0 if the value is not a tensor. */
  dataType: number;
  /** Dimensions: each a number, a name if it is only known at run time, or null if it has neither. */
  dims: (number | string | null)[];
}

/**
 * Decodes a NodeProto. Keeps fields that it does not know in `rest`, and writes the domain `ai.onnx` as its alias, the
 * empty string. Throws `engine_failed` if the bytes are not valid protobuf, or a name is not UTF-8.
 */
export function decodeNode(bytes: Uint8Array): OnnxNode {
  const node: OnnxNode = { name: '', op: '', domain: '', inputs: [], outputs: [], attributes: new Map(), rest: [] };
  for (const field of fieldsOf(bytes)) {
    if (field.no === 1) node.inputs.push(wireText(field.bytes));
    else if (field.no === 2) node.outputs.push(wireText(field.bytes));
    else if (field.no === 3) node.name = wireText(field.bytes);
    else if (field.no === 4) node.op = wireText(field.bytes);
    else if (field.no === 7) node.domain = wireText(field.bytes);
    else if (field.no === 5) {
      const attribute = fieldsOf(field.bytes);
      const name = attribute.find((part) => part.no === 1);
      node.attributes.set(name ? wireText(name.bytes) : '', attribute);
    } else node.rest.push(field);
  }
  if (node.domain === 'ai.onnx') node.domain = '';
  return node;
}

/** Encodes a node as a NodeProto, with the fields in `rest`. */
export function encodeNode(node: OnnxNode): Uint8Array {
  return encodeFields([
    ...node.inputs.map((name) => bytesField(1, name)),
    ...node.outputs.map((name) => bytesField(2, name)),
    bytesField(3, node.name),
    bytesField(4, node.op),
    ...[...node.attributes.values()].map((attribute) => bytesField(5, encodeFields(attribute))),
    bytesField(7, node.domain),
    ...node.rest,
  ]);
}

/**
 * Decodes a ValueInfoProto: the name and type of an input, output or intermediate value. Throws `engine_failed` if the
 * bytes are not valid protobuf, or a name is not UTF-8.
 */
export function decodeValueInfo(bytes: Uint8Array): ValueInfo {
  const info: ValueInfo = { name: '', dataType: 0, dims: [] };
  for (const field of fieldsOf(bytes)) {
    if (field.no === 1) info.name = wireText(field.bytes);
    else if (field.no === 2) {
      const tensor = inside(field.bytes, 1);
      if (!tensor) continue;
      for (const part of fieldsOf(tensor)) {
        if (part.no === 1) info.dataType = varint(part.bytes);
        else if (part.no === 2) info.dims = fieldsOf(part.bytes).map((dim) => dimension(dim.bytes));
      }
    }
  }
  return info;
}

/** Encodes a value's name, and the type of a tensor, as a ValueInfoProto. */
export function encodeValueInfo({ name, dataType, dims }: ValueInfo): Uint8Array {
  // The type of a value that is not a tensor follows from its node, so only the name is written.
  if (dataType === 0) return encodeFields([bytesField(1, name)]);
  const shape = dims.map((dim) =>
    bytesField(
      1,
      encodeFields(typeof dim === 'number' ? [varintField(1, dim)] : dim === null ? [] : [bytesField(2, dim)]),
    ),
  );
  const tensor = encodeFields([varintField(1, dataType), bytesField(2, encodeFields(shape))]);
  return encodeFields([bytesField(1, name), bytesField(2, encodeFields([bytesField(1, tensor)]))]);
}

/**
 * Returns the value of a node's attribute: a number, a string, or a list of integers. Returns undefined for other
 * kinds, or if the node does not have it.
 */
export function attribute(node: OnnxNode | undefined, name: string): number | string | number[] | undefined {
  const fields = node?.attributes.get(name);
  if (!fields) return undefined;
  const many = fields.filter((field) => field.no === 8);
  if (many.length > 0) return many.flatMap(varints);
  for (const field of fields) {
    if (field.no === 2) return new DataView(field.bytes.buffer, field.bytes.byteOffset).getFloat32(0, true);
    if (field.no === 3) return varint(field.bytes);
    if (field.no === 4) return wireText(field.bytes);
  }
  // Writers that follow proto3 omit zero values; the attribute's type then determines the value.
  const type = fields.find((field) => field.no === 20);
  const kind = type ? varint(type.bytes) : 0;
  return kind === 1 || kind === 2 ? 0 : kind === 7 ? [] : undefined;
}

/**
 * Returns the encoded TensorProto in a tensor attribute, such as `value` of a Constant node; undefined if the node has
 * none.
 */
export function tensorAttribute(node: OnnxNode, name: string): Uint8Array | undefined {
  return node.attributes.get(name)?.find((field) => field.no === 5)?.bytes;
}

export type NewAttribute = number | string | readonly number[] | { float: number };

/**
 * Creates a node with the name `assay/<first output>`. Numbers and lists of numbers become integer attributes, unless
 * given as `{ float: … }`.
 */
export function makeNode(
  op: string,
  inputs: string[],
  outputs: string[],
  attributes: Record<string, NewAttribute> = {},
  domain = '',
): OnnxNode {
  const entries = Object.entries(attributes).map(([name, value]): [string, Attribute] => [
    name,
    attributeFields(name, value),
  ]);
  return { name: `assay/${outputs[0] ?? op}`, op, domain, inputs, outputs, attributes: new Map(entries), rest: [] };
}

/**
 * Returns the fields of an AttributeProto. A number becomes an integer attribute, `{ float }` a float, a string a
 * string and an array a list of integers.
 */
export function attributeFields(name: string, value: NewAttribute): Attribute {
  // Field 20 is the attribute's type: 1 float, 2 integer, 3 string, 7 integers.
  if (typeof value === 'number') return [bytesField(1, name), varintField(3, value), varintField(20, 2)];
  if (typeof value === 'string') return [bytesField(1, name), bytesField(4, value), varintField(20, 3)];
  if ('float' in value) return [bytesField(1, name), floatField(2, value.float), varintField(20, 1)];
  return [bytesField(1, name), ...value.map((item) => varintField(8, item)), varintField(20, 7)];
}

/** Creates a tensor that shares the memory of `values`, and whose element type follows from the type of that array. */
export function makeTensor(
  name: string,
  dims: number[],
  values: Float32Array | BigInt64Array | Uint8Array | Int8Array,
): Tensor {
  const dataType =
    values instanceof Float32Array
      ? DataType.float
      : values instanceof BigInt64Array
        ? DataType.int64
        : values instanceof Uint8Array
          ? DataType.uint8
          : DataType.int8;
  return {
    name,
    dataType,
    dims,
    data: { bytes: new Uint8Array(values.buffer, values.byteOffset, values.byteLength) },
  };
}

function inside(bytes: Uint8Array, no: number): Uint8Array | undefined {
  return fieldsOf(bytes).find((field) => field.no === no)?.bytes;
}

function dimension(bytes: Uint8Array): number | string | null {
  for (const field of fieldsOf(bytes)) {
    if (field.no === 1) return varint(field.bytes);
    if (field.no === 2) return wireText(field.bytes);
  }
  return null;
}
