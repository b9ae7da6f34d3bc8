import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { at } from '../../lib/at.ts';

/**
 * Version of the GGUF format that is written. A file has metadata, a table of tensors, and the data of each tensor at a
 * multiple of 32 bytes. Source: ggml, docs/gguf.md.
 */
const VERSION = 3;
const ALIGNMENT = 32;

/**
 * Number formats of tensors: each block of `values` numbers takes `bytes` bytes. The ids are those of ggml's `enum
 * ggml_type`.
 */
export const TENSOR_TYPES = {
  f32: { id: 0, values: 1, bytes: 4 },
  /** Blocks of 32: a float16 scale, then 32 values of 4 bits. */
  q4_0: { id: 2, values: 32, bytes: 18 },
  /** Blocks of 32: a float16 scale, a float16 minimum, then 32 values of 4 bits. */
  q4_1: { id: 3, values: 32, bytes: 20 },
  /** Blocks of 32: a float16 scale, then 32 values of 8 bits. */
  q8_0: { id: 8, values: 32, bytes: 34 },
} as const;

export type TensorType = keyof typeof TENSOR_TYPES;

export interface GgufTensor {
  name: string;
  type: TensorType;
  /** Dimensions, innermost first, as ggml orders them. */
  dims: readonly number[];
  /** Yields the tensor's data in order. Its length in bytes is `tensorBytes`. */
  pieces(): Iterable<Uint8Array>;
}

export type Metadata = Record<string, MetadataValue>;
export type MetadataValue =
  | { type: 'uint32' | 'float32'; value: number }
  | { type: 'bool'; value: boolean }
  | { type: 'string'; value: string }
  | { type: 'strings'; value: readonly string[] }
  | { type: 'int32s'; value: readonly number[] };

export function tensorBytes({ type, dims }: Pick<GgufTensor, 'type' | 'dims'>): number {
  const { values, bytes } = TENSOR_TYPES[type];
  return (dims.reduce((product, dim) => product * dim, 1) / values) * bytes;
}

export function writeGguf(file: string, metadata: Metadata, tensors: readonly GgufTensor[]): void {
  const offsets: number[] = [];
  let end = 0;
  for (const tensor of tensors) {
    offsets.push(end);
    end = aligned(end + tensorBytes(tensor));
  }
  const header = Buffer.concat([
    Buffer.from('GGUF'),
    uint32(VERSION),
    uint64(tensors.length),
    uint64(Object.keys(metadata).length),
    ...Object.entries(metadata).flatMap(([key, value]) => [text(key), metadataValue(value)]),
    ...tensors.flatMap(({ name, type, dims }, i) => [
      text(name),
      uint32(dims.length),
      ...dims.map(uint64),
      uint32(TENSOR_TYPES[type].id),
      uint64(at(offsets, i)),
    ]),
  ]);
  const fd = openSync(file, 'wx');
  try {
    writeAll(fd, header, 0);
    const data = aligned(header.length);
    tensors.forEach((tensor, i) => {
      let position = data + at(offsets, i);
      for (const piece of tensor.pieces()) position += writeAll(fd, piece, position);
      if (position !== data + at(offsets, i) + tensorBytes(tensor))
        throw new Error(`${tensor.name}: not as long as it says`);
    });
    ftruncateSync(fd, data + end);
  } finally {
    closeSync(fd);
  }
}

/** Encodes a metadata value after the number of its type (`gguf_metadata_value_type`). */
function metadataValue(metadata: MetadataValue): Buffer {
  switch (metadata.type) {
    case 'uint32':
      return Buffer.concat([uint32(4), uint32(metadata.value)]);
    case 'float32': {
      const bytes = Buffer.alloc(4);
      bytes.writeFloatLE(metadata.value);
      return Buffer.concat([uint32(6), bytes]);
    }
    case 'bool':
      return Buffer.concat([uint32(7), Buffer.from([Number(metadata.value)])]);
    case 'string':
      return Buffer.concat([uint32(8), text(metadata.value)]);
    case 'strings':
      return Buffer.concat([uint32(9), uint32(8), uint64(metadata.value.length), ...metadata.value.map(text)]);
    case 'int32s': {
      const values = Int32Array.from(metadata.value);
      return Buffer.concat([uint32(9), uint32(5), uint64(values.length), Buffer.from(values.buffer)]);
    }
  }
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

function writeAll(fd: number, bytes: Uint8Array, at: number): number {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, at + done);
  return bytes.length;
}
