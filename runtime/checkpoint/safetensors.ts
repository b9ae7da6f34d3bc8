import { closeSync, existsSync, fstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { excessOf } from '../../lib/json/scan.ts';
import { readFully } from '../onnx/format/read-model.ts';
import { DOWNLOAD_AGAIN, unusable } from '../onnx/unusable.ts';
import type { StoredTensor, WeightSource } from './weight-source.ts';

/** File name of a checkpoint in one file. */
export const SINGLE_FILE = 'model.safetensors';
/** File name of the list of a checkpoint's shards. */
export const INDEX_FILE = 'model.safetensors.index.json';

/** Maximum bytes of a header or an index. The largest published ones have about 10 MB. */
const MAX_HEADER_BYTES = 32 << 20;
/** Maximum members and items of a header or an index, which are about seven for each tensor. */
const MAX_HEADER_PARTS = 2_000_000;
const MAX_SHARDS = 1000;
const MAX_DIMS = 8;
/** Bytes before the header: its length. */
const LENGTH_BYTES = 8;

/** Bytes of one element of each type. Types of less than a byte are left out: their tensors have no size to check. */
const ELEMENT_BYTES: Readonly<Record<string, number>> = {
  ...Object.fromEntries(['BOOL', 'U8', 'I8', 'F8_E5M2', 'F8_E4M3', 'F8_E8M0'].map((type) => [type, 1])),
  ...Object.fromEntries(['I16', 'U16', 'F16', 'BF16'].map((type) => [type, 2])),
  ...Object.fromEntries(['I32', 'U32', 'F32'].map((type) => [type, 4])),
  ...Object.fromEntries(['I64', 'U64', 'F64'].map((type) => [type, 8])),
};

const Count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const Entry = v.strictObject({
  dtype: v.string(),
  shape: v.pipe(v.array(Count), v.maxLength(MAX_DIMS)),
  data_offsets: v.strictTuple([Count, Count]),
});
const Index = v.looseObject({ weight_map: v.record(v.string(), v.string()) });
const SHARD_NAME = /^[\w-][\w.-]{0,200}\.safetensors$/u;

/**
 * Locates the weights of a checkpoint in the folder: those of `model.safetensors`, or of the shards that
 * `model.safetensors.index.json` lists. Reads no weights. Throws `engine_failed` for a file that is missing, damaged or
 * malicious.
 */
export function readCheckpoint(folder: string): WeightSource {
  if (existsSync(join(folder, SINGLE_FILE))) return readSafetensors(join(folder, SINGLE_FILE));
  const tensors = new Map<string, StoredTensor>();
  const owners = readIndex(join(folder, INDEX_FILE));
  const shards = new Set(owners.values());
  if (shards.size > MAX_SHARDS) throw unusable(`its weights are in more than ${MAX_SHARDS} files`);
  for (const shard of shards) {
    if (!SHARD_NAME.test(shard)) throw unusable(`${INDEX_FILE} names a file that is not a safetensors file`);
    for (const [name, tensor] of readSafetensors(join(folder, shard))) {
      if (owners.get(name) === shard) tensors.set(name, tensor);
    }
  }
  for (const [name, shard] of owners) {
    if (!tensors.has(name)) throw unusable(`${shard} lacks the weight "${name}", which the index says it has`);
  }
  return tensors;
}

/**
 * Locates the tensors of one safetensors file. Throws `engine_failed` unless the header is within its bounds and the
 * tensors fill the rest of the file without holes (huggingface.co/docs/safetensors, "Format").
 */
export function readSafetensors(file: string): WeightSource {
  const { header, start, size } = readHeader(file);
  const tensors = new Map<string, StoredTensor>();
  for (const [name, value] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const parsed = v.safeParse(Entry, value);
    if (!parsed.success) throw unusable(`the safetensors header describes "${name}" in an unknown way`);
    const { dtype, shape: dims, data_offsets } = parsed.output;
    const [begin, end] = data_offsets;
    const bytes = ELEMENT_BYTES[dtype];
    if (end < begin || (bytes !== undefined && dims.reduce((product, dim) => product * dim, bytes) !== end - begin)) {
      throw unusable(`the weight "${name}" has another size than its shape and type need`, DOWNLOAD_AGAIN);
    }
    tensors.set(name, { name, dtype, dims, data: { file, offset: start + begin, length: end - begin } });
  }
  let filled = start;
  for (const { offset, length } of [...tensors.values()]
    .map(spanOf)
    .sort((a, b) => a.offset - b.offset || a.length - b.length)) {
    if (offset !== filled) throw unusable('its weights overlap or leave holes in their file', DOWNLOAD_AGAIN);
    filled += length;
  }
  if (filled !== size) throw unusable('its weights do not end where their file ends', DOWNLOAD_AGAIN);
  return tensors;
}

function spanOf({ data }: StoredTensor): { offset: number; length: number } {
  // A cast: `readSafetensors` has made all of them as parts of a file.
  return data as { offset: number; length: number };
}

/** Reads the header of a safetensors file. Returns it with the offset of the first tensor and the size of the file. */
function readHeader(file: string): { header: object; start: number; size: number } {
  const fd = opened(file);
  try {
    const { size } = fstatSync(fd);
    const head = new Uint8Array(LENGTH_BYTES);
    if (size < LENGTH_BYTES) throw unusable('a safetensors file is too short', DOWNLOAD_AGAIN);
    readFully(fd, head, 0);
    const length = new DataView(head.buffer).getBigUint64(0, true);
    if (length > MAX_HEADER_BYTES) throw unusable('the header of its safetensors file is too large');
    const start = LENGTH_BYTES + Number(length);
    if (start > size) throw unusable('a safetensors file ends within its header', DOWNLOAD_AGAIN);
    const text = new Uint8Array(Number(length));
    readFully(fd, text, LENGTH_BYTES);
    return { header: parsedObject(text, 'the header of its safetensors file'), start, size };
  } finally {
    closeSync(fd);
  }
}

/** Reads which shard has each tensor. */
function readIndex(file: string): ReadonlyMap<string, string> {
  const fd = opened(file);
  try {
    const { size } = fstatSync(fd);
    if (size > MAX_HEADER_BYTES) throw unusable(`${INDEX_FILE} is too large`);
    const text = new Uint8Array(size);
    readFully(fd, text, 0);
    const parsed = v.safeParse(Index, parsedObject(text, INDEX_FILE));
    if (!parsed.success) throw unusable(`${INDEX_FILE} has no weight_map of names`, DOWNLOAD_AGAIN);
    return new Map(Object.entries(parsed.output.weight_map));
  } finally {
    closeSync(fd);
  }
}

function opened(file: string): number {
  try {
    return openSync(file, 'r');
  } catch (cause) {
    throw unusable('a file with its weights is missing', DOWNLOAD_AGAIN, cause);
  }
}

/** Parses a JSON object within the bounds. `what` names it in errors. */
function parsedObject(bytes: Uint8Array, what: string): object {
  const text = new TextDecoder().decode(bytes);
  if (excessOf(text, MAX_HEADER_PARTS)) throw unusable(`${what} nests too deep or has too many members`);
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Reported below.
  }
  throw unusable(`${what} is damaged`, DOWNLOAD_AGAIN);
}
