import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { append } from '../../../lib/append.ts';
import { DOWNLOAD_AGAIN, unusable } from '../unusable.ts';
import {
  DataType,
  decodeNode,
  decodeValueInfo,
  elementBytes,
  type Graph,
  type OnnxModel,
  type OnnxNode,
  type Tensor,
  type TensorData,
  tensorAttribute,
} from './model.ts';
import {
  type ByteSource,
  exactVarints,
  type FieldSpan,
  fieldSpans,
  memorySource,
  readField,
  varint,
  varintField,
  varints,
  type WireField,
  wireText,
} from './wire.ts';

/** Maximum bytes of a model file, which is protobuf's own limit. Larger weights are external data. */
const MAX_MODEL_BYTES = 2 ** 31;
const MAX_NODES = 200_000;
const MAX_TENSORS = 200_000;
/** Maximum bytes of a field that is read into memory: a node, a name, a small tensor. */
const MAX_FIELD_BYTES = 64 * 2 ** 20;
/**
 * Maximum bytes of a tensor that is read together with the graph. Larger tensors stay on disk until they are needed.
 */
const INLINE_BYTES = 4096;

/**
 * First version of the format (`ir_version`) in which weights need not be inputs, too. Those that are have a second
 * shape, and onnxruntime does not prepare them as constants.
 */
const INPUTS_ONLY = 4;

/**
 * Reads the graph of an ONNX file, and locates its weights without reading them. Weights are never inputs of the
 * result. Throws `engine_failed` for a file that
 * is damaged or too large, that has sparse weights, or that refers to files outside its folder.
 */
export function readModel(file: string): OnnxModel {
  const source = fileSource(file);
  try {
    const model: OnnxModel = {
      opsets: new Map(),
      graph: { nodes: [], initializers: new Map(), inputs: [], outputs: [], rest: [] },
      rest: [],
    };
    let graphs = 0;
    for (const span of fieldSpans(source)) {
      if (span.no === 7) {
        if (++graphs > 1) throw unusable('it has more than one graph');
        readGraph(source, span, file, model.graph);
      } else if (span.no === 8) {
        const opset = [...fieldSpans(source, span.start, span.end)].map((part) => bounded(source, part));
        const domain = opset.find((part) => part.no === 1);
        const version = opset.find((part) => part.no === 2);
        model.opsets.set(domain ? wireText(domain.bytes) : '', version ? varint(version.bytes) : 0);
      } else if (span.no === 1)
        model.rest.push(varintField(1, Math.max(INPUTS_ONLY, varint(bounded(source, span).bytes))));
      else model.rest.push(bounded(source, span));
    }
    if (graphs === 0) throw unusable('it has no graph');
    const { inputs, initializers } = model.graph;
    model.graph.inputs = inputs.filter(({ name }) => !initializers.has(name));
    return model;
  } finally {
    source.close();
  }
}

function readGraph(source: ByteSource, graphSpan: FieldSpan, file: string, graph: Graph): void {
  for (const span of fieldSpans(source, graphSpan.start, graphSpan.end)) {
    if (span.no === 1) {
      if (graph.nodes.length === MAX_NODES) throw unusable(`it has more than ${MAX_NODES} nodes`);
      graph.nodes.push(decodeNode(bounded(source, span).bytes));
    } else if (span.no === 5) {
      if (graph.initializers.size === MAX_TENSORS) throw unusable(`it has more than ${MAX_TENSORS} weights`);
      const tensor = readTensor(source, span, file);
      graph.initializers.set(tensor.name, tensor);
    } else if (span.no === 11) graph.inputs.push(decodeValueInfo(bounded(source, span).bytes));
    else if (span.no === 12) graph.outputs.push(decodeValueInfo(bounded(source, span).bytes));
    else if (span.no === 15) throw unusable('it has sparse weights, which are not supported');
    else if (span.no !== 13) graph.rest.push(bounded(source, span));
  }
}

/**
 * Parses the TensorProto in `tensorSpan`. The bytes of a tensor with more than `INLINE_BYTES` stay in `file`. Throws
 * `engine_failed` if it is not valid, or if its external data is outside the folder of `file`.
 *
 * @param file path of the file that `source` reads; null if `source` is memory, where external data is not allowed
 */
export function readTensor(
  source: ByteSource,
  tensorSpan: { start: number; end: number },
  file: string | null,
): Tensor {
  const tensor: Tensor = { name: '', dataType: 0, dims: [], data: { bytes: new Uint8Array(0) } };
  const external = new Map<string, string>();
  const typed: WireField[] = [];
  let isExternal = false;
  for (const span of fieldSpans(source, tensorSpan.start, tensorSpan.end)) {
    if (span.no === 9) {
      const length = span.end - span.start;
      tensor.data =
        file === null || length <= INLINE_BYTES
          ? { bytes: source.read(span.start, span.end).slice() }
          : { file, offset: span.start, length };
      continue;
    }
    const field = bounded(source, span);
    if (span.no === 1) append(tensor.dims, varints(field));
    else if (span.no === 2) tensor.dataType = varint(field.bytes);
    else if (span.no === 8) tensor.name = wireText(field.bytes);
    else if (span.no === 13) {
      const entry = new Map(
        [...fieldSpans(source, span.start, span.end)].map((s) => [s.no, wireText(bounded(source, s).bytes)]),
      );
      external.set(entry.get(1) ?? '', entry.get(2) ?? '');
    } else if (span.no === 14) isExternal = varint(field.bytes) === 1;
    else if ([4, 5, 7, 10, 11].includes(span.no)) typed.push(field);
  }
  if (isExternal && file === null) throw unusable(`the constant "${tensor.name}" is in another file`);
  if (isExternal) tensor.data = externalData(external, file ?? '', tensor.name);
  else if (typed.length > 0) tensor.data = { bytes: typedBytes(tensor.dataType, typed) };
  checkSize(tensor);
  return tensor;
}

/**
 * Returns the tensor of a `Constant` node; undefined for other nodes and for constants that are not tensors. Throws
 * `engine_failed` for an invalid tensor.
 */
export function constantOf(node: OnnxNode | undefined): Tensor | undefined {
  const bytes = node?.op === 'Constant' ? tensorAttribute(node, 'value') : undefined;
  if (!bytes) return undefined;
  return readTensor(memorySource(bytes), { start: 0, end: bytes.length }, null);
}

function externalData(entries: Map<string, string>, file: string, name: string): TensorData {
  const location = entries.get('location') ?? '';
  const folder = resolve(dirname(file));
  const path = join(folder, location);
  // The name is checked, but not the target of a link: a hub cache links from the model's folder to its blobs, and the
  // author of a graph cannot create links.
  const outside = location === '' || isAbsolute(location) || location.includes('\0') || /^[a-z]:|\\/i.test(location);
  if (outside || !path.startsWith(folder + sep)) {
    throw unusable(`the weight "${name}" is outside the model's folder`);
  }
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) throw unusable('a file with its weights is missing', DOWNLOAD_AGAIN);
  const offset = Number(entries.get('offset') ?? 0);
  const length = Number(entries.get('length') ?? size - offset);
  if (
    !Number.isSafeInteger(offset) ||
    !Number.isSafeInteger(length) ||
    offset < 0 ||
    length < 0 ||
    offset + length > size
  ) {
    throw unusable(`the weight "${name}" goes beyond the end of its file`, DOWNLOAD_AGAIN);
  }
  return { file: path, offset, length };
}

/**
 * Converts the numbers of the fields float_data, int32_data (also used for smaller types) and int64_data to raw bytes.
 */
function typedBytes(dataType: number, fields: WireField[]): Uint8Array {
  if (dataType === DataType.float || dataType === DataType.double) {
    return Uint8Array.from(fields.flatMap((field) => Array.from(field.bytes)));
  }
  // Exact: graphs contain the largest integer, as the end of slices without an end.
  if (dataType === DataType.int64) return new Uint8Array(BigInt64Array.from(fields.flatMap(exactVarints)).buffer);
  const values = fields.flatMap(varints);
  if (dataType === DataType.int32) return new Uint8Array(Int32Array.from(values).buffer);
  if (elementBytes(dataType) === 2) return new Uint8Array(Uint16Array.from(values).buffer);
  return Uint8Array.from(values);
}

function checkSize(tensor: Tensor): void {
  const width = elementBytes(tensor.dataType);
  if (width === undefined) throw unusable(`the weight "${tensor.name}" is of the unsupported type ${tensor.dataType}`);
  if (tensor.dims.some((dim) => !Number.isSafeInteger(dim) || dim < 0)) {
    throw unusable(`the weight "${tensor.name}" has an impossible shape`);
  }
  const wanted = Math.ceil(tensor.dims.reduce((product, dim) => product * dim, width));
  const length = 'bytes' in tensor.data ? tensor.data.bytes.length : tensor.data.length;
  if (wanted !== length)
    throw unusable(`the weight "${tensor.name}" has ${length} bytes, but its shape needs ${wanted}`);
}

function bounded(source: ByteSource, span: FieldSpan): WireField {
  if (span.end - span.start > MAX_FIELD_BYTES) throw unusable('a part of it other than a weight is larger than 64 MiB');
  const field = readField(source, span);
  return { ...field, bytes: field.bytes.slice() };
}

/**
 * Opens a file as a `ByteSource` that reads through a small buffer, so that a parser can skip gigabytes of weights
 * without reading them from disk.
 */
function fileSource(file: string): ByteSource & { close(): void } {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch (cause) {
    throw unusable('it cannot be opened', DOWNLOAD_AGAIN, cause);
  }
  const stat = fstatSync(fd);
  const { size } = stat;
  if (!stat.isFile() || size > MAX_MODEL_BYTES) {
    closeSync(fd);
    throw unusable(stat.isFile() ? 'it is larger than 2 GiB' : 'it is not a file');
  }
  let window = new Uint8Array(0);
  let windowStart = 0;
  return {
    size,
    read(start, end) {
      if (start < 0 || end > size) throw unusable('it ends too early', DOWNLOAD_AGAIN);
      if (start < windowStart || end > windowStart + window.length) {
        window = new Uint8Array(Math.min(size - start, Math.max(end - start, 1 << 16)));
        windowStart = start;
        readFully(fd, window, start);
      }
      return window.subarray(start - windowStart, end - windowStart);
    },
    close: () => closeSync(fd),
  };
}

/** Reads bytes of a file from `offset` on until `into` is full. Throws `engine_failed` if the file ends earlier. */
export function readFully(fd: number, into: Uint8Array, offset: number): void {
  for (let done = 0; done < into.length; ) {
    const got = readSync(fd, into, done, into.length - done, offset + done);
    if (got === 0) throw unusable('a file ends too early', DOWNLOAD_AGAIN);
    done += got;
  }
}
