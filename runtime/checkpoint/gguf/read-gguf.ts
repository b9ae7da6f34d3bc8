import { closeSync, fstatSync, openSync } from 'node:fs';
import { readFully } from '../../onnx/format/read-model.ts';
import { DOWNLOAD_AGAIN, unusable } from '../../onnx/unusable.ts';
import type { StoredTensor, WeightSource } from '../weight-source.ts';
import { BLOCK_TYPES } from './blocks.ts';

export type GgufValue = string | number | boolean | readonly GgufValue[];

/** Describes a GGUF file: its metadata, and where its tensors are. */
export interface GgufFile {
  metadata: ReadonlyMap<string, GgufValue>;
  tensors: WeightSource;
}

const MAGIC = 0x46554747;
const VERSIONS = [2, 3];
/** Maximum bytes of all metadata and descriptions of tensors. The largest published vocabularies take about 20 MB. */
const MAX_HEADER_BYTES = 256 << 20;
const MAX_TENSORS = 65_536;
const MAX_KEYS = 65_536;
/** Maximum items of all lists together: tokens, scores, types and merges of eight times the largest vocabulary. */
const MAX_ITEMS = 1 << 23;
const MAX_DEPTH = 4;
const MAX_NAME_BYTES = 1024;
const MAX_TEXT_BYTES = 4 << 20;
const MAX_DIMS = 4;
const MAX_ALIGNMENT = 1 << 20;
const DEFAULT_ALIGNMENT = 32;
const CHUNK_BYTES = 1 << 20;

/** Types of tensors by their number in the file, with the bytes of their elements where they are plain floats. */
const TYPES: Readonly<Record<number, string>> = {
  ...{ 0: 'F32', 1: 'F16', 2: 'Q4_0', 3: 'Q4_1', 6: 'Q5_0', 7: 'Q5_1', 8: 'Q8_0', 9: 'Q8_1', 10: 'Q2_K', 11: 'Q3_K' },
  ...{ 12: 'Q4_K', 13: 'Q5_K', 14: 'Q6_K', 15: 'Q8_K', 16: 'IQ2_XXS', 17: 'IQ2_XS', 18: 'IQ3_XXS', 19: 'IQ1_S' },
  ...{ 20: 'IQ4_NL', 21: 'IQ3_S', 22: 'IQ2_S', 23: 'IQ4_XS', 24: 'I8', 25: 'I16', 26: 'I32', 27: 'I64', 28: 'F64' },
  ...{ 29: 'IQ1_M', 30: 'BF16', 34: 'TQ1_0', 35: 'TQ2_0', 39: 'MXFP4', 40: 'NVFP4' },
};
const FLOAT_BYTES: Readonly<Record<string, number>> = { F32: 4, F16: 2, BF16: 2 };

/** Types of values in the metadata. */
const Kind = { text: 8, list: 9 } as const;

/**
 * Reads the metadata of a GGUF file and locates its tensors without reading them (github.com/ggml-org/ggml,
 * docs/gguf.md; versions 2 and 3, little endian). Throws `engine_failed` for a file that is damaged or malicious, and
 * for a part of a model in several files.
 */
export function readGguf(file: string): GgufFile {
  const fd = opened(file);
  try {
    return read(new Header(fd, fstatSync(fd).size), file);
  } finally {
    closeSync(fd);
  }
}

function read(header: Header, file: string): GgufFile {
  if (header.size < 24 || header.u32() !== MAGIC) throw unusable('it is not a GGUF file');
  const version = header.u32();
  if (!VERSIONS.includes(version)) {
    throw unusable(`it is a GGUF file of version ${version}, and only versions 2 and 3 of little endian are read`);
  }
  const [tensorCount, keyCount] = [header.count(MAX_TENSORS, 'tensors'), header.count(MAX_KEYS, 'keys')];
  const metadata = new Map<string, GgufValue>();
  for (let index = 0; index < keyCount; index++) {
    const key = header.text(MAX_NAME_BYTES);
    if (metadata.has(key)) throw unusable(`its metadata has the key "${key}" twice`);
    metadata.set(key, header.value());
  }
  const parts = metadata.get('split.count');
  if (typeof parts === 'number' && parts > 1) {
    throw unusable(
      `it is one of ${parts} parts of a model`,
      'Merge them with llama-gguf-split --merge, or use a file that is whole.',
    );
  }
  const infos = Array.from({ length: tensorCount }, () => {
    const name = header.text(MAX_NAME_BYTES);
    const dims = Array.from({ length: header.count32(MAX_DIMS, 'dimensions') }, () => header.u64()).reverse();
    const type = header.u32();
    return { name, dims, dtype: TYPES[type] ?? `number ${type}`, offset: header.u64() };
  });
  const alignment = metadata.get('general.alignment') ?? DEFAULT_ALIGNMENT;
  const isPower = typeof alignment === 'number' && alignment >= 1 && Number.isInteger(Math.log2(alignment));
  if (!isPower || alignment > MAX_ALIGNMENT) throw unusable('its alignment is not a power of two', DOWNLOAD_AGAIN);
  const start = Math.ceil(header.position / alignment) * alignment;
  const tensors = new Map<string, StoredTensor>();
  const spans: { start: number; end: number }[] = [];
  for (const { name, dims, dtype, offset } of infos) {
    if (tensors.has(name)) throw unusable(`it has the tensor "${name}" twice`);
    const length = bytesOf(name, dtype, dims);
    const begin = start + offset;
    if (offset % alignment !== 0) throw unusable(`the tensor "${name}" is not aligned`, DOWNLOAD_AGAIN);
    if (begin + length > header.size) throw unusable(`the tensor "${name}" ends beyond its file`, DOWNLOAD_AGAIN);
    spans.push({ start: begin, end: begin + length });
    tensors.set(name, { name, dtype, dims, data: { file, offset: begin, length } });
  }
  spans.sort((a, b) => a.start - b.start || a.end - b.end);
  if (spans.some(({ start }, index) => start < (spans[index - 1]?.end ?? 0))) {
    throw unusable('its tensors overlap in their file', DOWNLOAD_AGAIN);
  }
  return { metadata, tensors };
}

/** Returns the bytes of a tensor; 0 for a type that is not read, whose tensors are refused where they are needed. */
function bytesOf(name: string, dtype: string, dims: readonly number[]): number {
  const count = dims.reduce((product, dim) => product * dim, 1);
  if (!Number.isSafeInteger(count) || count === 0) throw unusable(`the tensor "${name}" has no size or a huge one`);
  const { elements, bytes } = BLOCK_TYPES[dtype] ?? { elements: 1, bytes: FLOAT_BYTES[dtype] ?? 0 };
  if ((dims.at(-1) ?? 1) % elements !== 0) {
    throw unusable(`the rows of the tensor "${name}" are not whole blocks of the type ${dtype}`);
  }
  return (count / elements) * bytes;
}

function opened(file: string): number {
  try {
    return openSync(file, 'r');
  } catch (cause) {
    throw unusable('a file with its weights is missing', DOWNLOAD_AGAIN, cause);
  }
}

/** Reads values one after another, within the bounds of a header. */
class Header {
  readonly size: number;
  readonly #fd: number;
  #chunk = new DataView(new ArrayBuffer(0));
  /** Offset of the chunk in the file. */
  #base = 0;
  #items = 0;
  position = 0;

  constructor(fd: number, size: number) {
    this.#fd = fd;
    this.size = size;
  }

  u32(): number {
    return this.#view(4).getUint32(0, true);
  }

  u64(): number {
    const value = this.#view(8).getBigUint64(0, true);
    if (value > Number.MAX_SAFE_INTEGER) throw unusable('its header has a number that is too large');
    return Number(value);
  }

  /** Reads a count of at most `most`. `what` names it in errors. */
  count(most: number, what: string): number {
    return bounded(this.u64(), most, what);
  }

  count32(most: number, what: string): number {
    return bounded(this.u32(), most, what);
  }

  text(most: number): string {
    const length = this.count(most, 'bytes in one of its texts');
    const view = this.#view(length);
    // A token may begin with U+FEFF.
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array(view.buffer, view.byteOffset, length));
  }

  /** Reads a value of the metadata, with its type. */
  value(): GgufValue {
    return this.#typed(this.u32(), 0);
  }

  #typed(type: number, depth: number): GgufValue {
    switch (type) {
      case 0:
        return this.#view(1).getUint8(0);
      case 1:
        return this.#view(1).getInt8(0);
      case 2:
        return this.#view(2).getUint16(0, true);
      case 3:
        return this.#view(2).getInt16(0, true);
      case 4:
        return this.u32();
      case 5:
        return this.#view(4).getInt32(0, true);
      case 6:
        return this.#view(4).getFloat32(0, true);
      case 7:
        return this.#view(1).getUint8(0) !== 0;
      case Kind.text:
        return this.text(MAX_TEXT_BYTES);
      case Kind.list:
        return this.#list(depth + 1);
      case 10:
        return this.u64();
      case 11:
        return Number(this.#view(8).getBigInt64(0, true));
      case 12:
        return this.#view(8).getFloat64(0, true);
      default:
        throw unusable(`its metadata has a value of the unknown type ${type}`);
    }
  }

  #list(depth: number): GgufValue[] {
    if (depth > MAX_DEPTH) throw unusable('its metadata nests too deep');
    const type = this.u32();
    const length = this.count(MAX_ITEMS, 'items in a list');
    this.#items = bounded(this.#items + length, MAX_ITEMS, 'items in lists');
    // Pushed one by one, so that a list that the file does not hold takes no memory.
    const items: GgufValue[] = [];
    for (let index = 0; index < length; index++) items.push(this.#typed(type, depth));
    return items;
  }

  /** Returns the next `length` bytes. */
  #view(length: number): DataView {
    const end = this.position + length;
    if (end > this.size) throw unusable('a GGUF file ends within its header', DOWNLOAD_AGAIN);
    if (end > MAX_HEADER_BYTES) throw unusable('the header of its GGUF file is too large');
    if (end > this.#base + this.#chunk.byteLength) {
      const bytes = new Uint8Array(Math.min(this.size - this.position, Math.max(length, CHUNK_BYTES)));
      readFully(this.#fd, bytes, this.position);
      this.#chunk = new DataView(bytes.buffer);
      this.#base = this.position;
    }
    const view = new DataView(this.#chunk.buffer, this.position - this.#base, length);
    this.position = end;
    return view;
  }
}

function bounded(value: number, most: number, what: string): number {
  if (value > most) throw unusable(`it has more than ${most} ${what}`);
  return value;
}
