import { closeSync, openSync } from 'node:fs';
import { isHalfType, widen } from '../to-float32.ts';
import { type ComputedBytes, DataType, dataLength, elementBytes, type Tensor, type TensorData } from './model.ts';
import { readFully } from './read-model.ts';

/** Approximate number of bytes of weights that are in memory at a time. */
export const PIECE_BYTES = 16 * 2 ** 20;

/** Returns a tensor's bytes as pieces that are read from memory or disk one at a time. */
export function readPieces(data: TensorData): ComputedBytes {
  if ('pieces' in data) return data;
  return {
    length: dataLength(data),
    *pieces() {
      const reader = openData(data);
      try {
        for (let at = 0; at < reader.length; at += PIECE_BYTES) {
          yield reader.read(at, Math.min(reader.length, at + PIECE_BYTES));
        }
      } finally {
        reader.close();
      }
    },
  };
}

/**
 * Returns a tensor of 16-bit floats as one of 32-bit floats, converted piece by piece when read. Returns any other
 * tensor unchanged.
 */
export function widened(tensor: Tensor): Tensor {
  if (!isHalfType(tensor.dataType)) return tensor;
  const halves = readPieces(tensor.data);
  return {
    ...tensor,
    dataType: DataType.float,
    data: {
      length: halves.length * 2,
      *pieces() {
        for (const piece of halves.pieces()) yield new Uint8Array(widen(piece, tensor.dataType).buffer);
      },
    },
  };
}

/** Provides a matrix of 32-bit floats that is read block by block, so that it need not be in memory as a whole. */
export interface FloatMatrix {
  rows: number;
  columns: number;
  /** Calls `visit` with consecutive blocks of whole rows, from the first row on. */
  forEachBlock(visit: (block: Float32Array, firstRow: number, rowCount: number) => void): void;
}

/** Returns a two-dimensional tensor of 16-bit or 32-bit floats as a matrix; undefined for any other tensor. */
export function floatMatrix(tensor: Tensor): FloatMatrix | undefined {
  const [rows, columns] = tensor.dims;
  const { dataType } = tensor;
  if (tensor.dims.length !== 2 || !rows || !columns) return undefined;
  if (dataType !== DataType.float && !isHalfType(dataType)) return undefined;
  const rowBytes = columns * elementBytes(dataType)!;
  return {
    rows,
    columns,
    forEachBlock(visit) {
      let row = 0;
      let rest = new Uint8Array(0);
      for (const piece of readPieces(tensor.data).pieces()) {
        const bytes = new Uint8Array(rest.length + piece.length);
        bytes.set(rest);
        bytes.set(piece, rest.length);
        const count = Math.floor(bytes.length / rowBytes);
        rest = bytes.slice(count * rowBytes);
        if (count > 0) visit(asFloats(bytes.subarray(0, count * rowBytes), dataType), row, count);
        row += count;
      }
    },
  };
}

/** Reads all elements of a tensor of 16-bit or 32-bit floats into memory, as 32-bit floats. */
export function readFloats(tensor: Tensor): Float32Array<ArrayBuffer> {
  return asFloats(readAll(tensor), tensor.dataType);
}

/** Reads `count` elements of a tensor of floats from the element `first` on, as 32-bit floats. */
export function readSomeFloats({ data, dataType }: Tensor, first: number, count: number): Float32Array<ArrayBuffer> {
  const width = elementBytes(dataType) ?? 0;
  return asFloats(readSome(data, first * width, (first + count) * width), dataType);
}

/**
 * Returns bytes of 32-bit floats that are computed row by row when they are read.
 *
 * @param rowsFrom computes `count` rows from the row `first` on
 */
export function computedRows(
  rows: number,
  columns: number,
  rowsFrom: (first: number, count: number) => Float32Array<ArrayBuffer>,
): ComputedBytes {
  const rowBytes = columns * 4;
  const length = rows * rowBytes;
  const read = (start: number, end: number): Uint8Array<ArrayBuffer> => {
    const first = Math.floor(start / rowBytes);
    const values = rowsFrom(first, Math.ceil(end / rowBytes) - first);
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    return bytes.subarray(start - first * rowBytes, end - first * rowBytes);
  };
  const pieceBytes = Math.max(1, Math.floor(PIECE_BYTES / rowBytes)) * rowBytes;
  return {
    length,
    *pieces() {
      for (let at = 0; at < length; at += pieceBytes) yield read(at, Math.min(length, at + pieceBytes));
    },
    read,
  };
}

/** Reads all bytes of a tensor into memory. Throws `engine_failed` if its file ends before them. */
export function readAll({ data }: Tensor): Uint8Array<ArrayBuffer> {
  return readSome(data, 0, dataLength(data));
}

/** Returns a copy of the bytes from `start` to before `end`, which is aligned for any element type. */
export function readSome(data: TensorData, start: number, end: number): Uint8Array<ArrayBuffer> {
  const reader = openData(data);
  try {
    return reader.read(start, end);
  } finally {
    reader.close();
  }
}

export interface DataReader {
  length: number;
  /** Returns a copy of the bytes from `start` to before `end`, which is aligned for any element type. */
  read(start: number, end: number): Uint8Array<ArrayBuffer>;
  close(): void;
}

/** Opens the bytes of a tensor for reading. The caller must close the reader, which may hold a file open. */
export function openData(data: TensorData): DataReader {
  if ('pieces' in data && data.read) return { length: data.length, read: data.read, close() {} };
  if ('pieces' in data) {
    const whole = new Uint8Array(data.length);
    let at = 0;
    for (const piece of data.pieces()) {
      whole.set(piece, at);
      at += piece.length;
    }
    return openData({ bytes: whole });
  }
  if ('bytes' in data) {
    return {
      length: data.bytes.length,
      // A cast: a slice has its own buffer.
      read: (start, end) => data.bytes.slice(start, end) as Uint8Array<ArrayBuffer>,
      close() {},
    };
  }
  const fd = openSync(data.file, 'r');
  return {
    length: data.length,
    read(start, end) {
      const bytes = new Uint8Array(end - start);
      readFully(fd, bytes, data.offset + start);
      return bytes;
    },
    close: () => closeSync(fd),
  };
}

function asFloats(bytes: Uint8Array<ArrayBuffer>, dataType: number): Float32Array<ArrayBuffer> {
  if (isHalfType(dataType)) return widen(bytes, dataType);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}
