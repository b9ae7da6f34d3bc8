import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { dataLength, encodeNode, encodeValueInfo, type OnnxModel, type Tensor } from './model.ts';
import { readAll, readPieces } from './tensor-data.ts';
import { bytesField, encodeFields, varintField, type WireField } from './wire.ts';

/**
 * Alignment of weights in bytes: the page size of most systems, so that onnxruntime maps weights instead of copying
 * them.
 */
const ALIGNMENT = 4096;
/** Tensors of at most this many bytes are stored in the graph's own file. */
const INLINE_BYTES = 1024;

/** Writes tensors one after another to a new file of external data, with one piece of a tensor in memory at a time. */
export class WeightsWriter {
  readonly #fd: number;
  readonly #file: string;
  #end = 0;

  constructor(folder: string, file: string) {
    this.#file = file;
    this.#fd = openSync(join(folder, file), 'wx');
  }

  /**
   * Writes a tensor and returns its encoded TensorProto, which refers to the written bytes. Does not write a tensor of
   * at most `INLINE_BYTES`: its TensorProto contains the bytes. Reports the number of bytes of each written piece to
   * `onBytes`.
   */
  write(tensor: Tensor, onBytes: (count: number) => void): Uint8Array {
    if (dataLength(tensor.data) <= INLINE_BYTES) return encodeTensor(tensor);
    const bytes = readPieces(tensor.data);
    const offset = Math.ceil(this.#end / ALIGNMENT) * ALIGNMENT;
    let at = offset;
    for (const piece of bytes.pieces()) {
      for (let done = 0; done < piece.length; ) {
        done += writeSync(this.#fd, piece, done, piece.length - done, at + done);
      }
      at += piece.length;
      onBytes(piece.length);
    }
    this.#end = at;
    const entries = { location: this.#file, offset: String(offset), length: String(at - offset) };
    return encodeFields([
      ...tensorHead(tensor),
      ...Object.entries(entries).map(([key, value]) =>
        bytesField(13, encodeFields([bytesField(1, key), bytesField(2, value)])),
      ),
      varintField(14, 1),
    ]);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Returns the TensorProto of a small tensor, including its bytes. */
function encodeTensor(tensor: Tensor): Uint8Array {
  return encodeFields([...tensorHead(tensor), bytesField(9, readAll(tensor))]);
}

function tensorHead({ dims, dataType, name }: Tensor): WireField[] {
  return [...dims.map((dim) => varintField(1, dim)), varintField(2, dataType), bytesField(8, name)];
}

/**
 * Writes a model's file, in place of an existing one.
 *
 * @param tensors encoded TensorProtos of the graph's weights, which are written instead of `model.graph.initializers`
 */
export function writeModel(file: string, model: OnnxModel, tensors: readonly Uint8Array[]): void {
  writeFileSync(file, encodeModel(model, tensors));
}

/** Returns the encoded model including its weights, which must be small. */
export function encodeSmallModel(model: OnnxModel): Uint8Array {
  return encodeModel(model, Array.from(model.graph.initializers.values(), encodeTensor));
}

function encodeModel(model: OnnxModel, tensors: readonly Uint8Array[]): Uint8Array {
  const { graph } = model;
  const graphBytes = encodeFields([
    ...graph.nodes.map((node) => bytesField(1, encodeNode(node))),
    ...graph.rest,
    ...tensors.map((tensor) => bytesField(5, tensor)),
    ...graph.inputs.map((input) => bytesField(11, encodeValueInfo(input))),
    ...graph.outputs.map((output) => bytesField(12, encodeValueInfo(output))),
  ]);
  const opsets = [...model.opsets].map(([domain, version]) =>
    bytesField(8, encodeFields([bytesField(1, domain), varintField(2, version)])),
  );
  return encodeFields([...model.rest, bytesField(7, graphBytes), ...opsets]);
}
