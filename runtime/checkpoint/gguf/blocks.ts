import { at } from '../../../lib/at.ts';
import type { TensorData } from '../../onnx/format/model.ts';
import { computedRows, openData } from '../../onnx/format/tensor-data.ts';
import { fromHalf } from '../../onnx/to-float32.ts';

/** Receives what a block holds: a level for each weight, and a scale (and a minimum) for each group of weights. */
interface Decoded {
  levels: Uint8Array;
  scales: Float32Array;
  mins: Float32Array;
}

/**
 * Describes a type of GGML blocks, as operands of MatMulNBits: a weight is `(level - zero) * scale + min`
 * (github.com/ggml-org/ggml, src/ggml-quants.c).
 */
export interface BlockType {
  /** Number of weights in a block. */
  elements: number;
  bytes: number;
  /** Bits of a level. */
  bits: 4 | 8;
  /** Number of weights that share a scale. */
  group: number;
  /** Level that stands for zero. */
  zero: number;
  /** True if groups have a minimum. */
  min: boolean;
  decode(block: Uint8Array, into: Decoded): void;
}

/** Values of the levels of IQ4_NL and IQ4_XS. */
const IQ4 = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/** Values of the levels of MXFP4, twice those of E2M1, so that they are whole. */
export const E2M1 = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

const small = { elements: 32, group: 32 };
const large = { elements: 256 };
const four = { bits: 4, zero: 8, min: false } as const;
const eight = { bits: 8, zero: 128, min: false } as const;
const withMin = { zero: 0, min: true };

export const BLOCK_TYPES: Readonly<Record<string, BlockType>> = {
  Q4_0: {
    ...{ ...small, ...four, bytes: 18 },
    decode(block, { levels, scales }) {
      scales[0] = half(block, 0);
      nibbles(block, 2, levels, 0, (level) => level);
    },
  },
  Q4_1: {
    ...{ ...small, ...withMin, bits: 4, bytes: 20 },
    decode(block, { levels, scales, mins }) {
      scales[0] = half(block, 0);
      mins[0] = half(block, 2);
      nibbles(block, 4, levels, 0, (level) => level);
    },
  },
  Q5_0: {
    ...{ ...small, ...eight, bytes: 22 },
    decode(block, { levels, scales }) {
      scales[0] = half(block, 0);
      nibbles(block, 6, levels, 0, (level, place) => level + fifthBit(block, 2, place) + 112);
    },
  },
  Q5_1: {
    ...{ ...small, ...withMin, bits: 8, bytes: 24 },
    decode(block, { levels, scales, mins }) {
      scales[0] = half(block, 0);
      mins[0] = half(block, 2);
      nibbles(block, 8, levels, 0, (level, place) => level + fifthBit(block, 4, place));
    },
  },
  Q8_0: {
    ...{ ...small, ...eight, bytes: 34 },
    decode(block, { levels, scales }) {
      scales[0] = half(block, 0);
      for (let place = 0; place < 32; place++) levels[place] = byte(block, 2 + place) ^ 128;
    },
  },
  Q2_K: {
    ...{ ...large, ...withMin, group: 16, bits: 4, bytes: 84 },
    decode(block, { levels, scales, mins }) {
      const [scale, min] = [half(block, 80), half(block, 82)];
      for (let group = 0; group < 16; group++) {
        scales[group] = scale * (byte(block, group) & 15);
        mins[group] = -min * (byte(block, group) >> 4);
      }
      for (let place = 0; place < 256; place++) {
        const [part, plane, column] = planes(place);
        levels[place] = (byte(block, 16 + part * 32 + column) >> (2 * plane)) & 3;
      }
    },
  },
  Q3_K: {
    ...{ ...large, ...four, group: 16, bytes: 110 },
    decode(block, { levels, scales }) {
      const scale = half(block, 108);
      for (let group = 0; group < 16; group++) {
        const low = group < 8 ? byte(block, 96 + group) & 15 : byte(block, 88 + group) >> 4;
        const high = (byte(block, 104 + (group & 3)) >> (2 * (group >> 2))) & 3;
        scales[group] = scale * ((low | (high << 4)) - 32);
      }
      for (let place = 0; place < 256; place++) {
        const [part, plane, column] = planes(place);
        const low = (byte(block, 32 + part * 32 + column) >> (2 * plane)) & 3;
        levels[place] = low + ((byte(block, column) >> (4 * part + plane)) & 1 ? 8 : 4);
      }
    },
  },
  Q4_K: {
    ...{ ...large, ...withMin, group: 32, bits: 4, bytes: 144 },
    decode(block, { levels, scales, mins }) {
      sixBitScales(block, scales, mins);
      for (let place = 0; place < 256; place++) levels[place] = halfByte(block, 16, place);
    },
  },
  Q5_K: {
    ...{ ...large, ...withMin, group: 32, bits: 8, bytes: 176 },
    decode(block, { levels, scales, mins }) {
      sixBitScales(block, scales, mins);
      for (let place = 0; place < 256; place++) {
        const high = (byte(block, 16 + (place & 31)) >> (place >> 5)) & 1;
        levels[place] = halfByte(block, 48, place) | (high << 4);
      }
    },
  },
  Q6_K: {
    ...{ ...large, ...eight, group: 16, bytes: 210 },
    decode(block, { levels, scales }) {
      const scale = half(block, 208);
      for (let group = 0; group < 16; group++) scales[group] = scale * signed(byte(block, 192 + group));
      for (let place = 0; place < 256; place++) {
        const [part, plane, column] = planes(place);
        const low = (byte(block, part * 64 + (plane & 1) * 32 + column) >> (plane < 2 ? 0 : 4)) & 15;
        const high = (byte(block, 128 + part * 32 + column) >> (2 * plane)) & 3;
        levels[place] = (low | (high << 4)) + 96;
      }
    },
  },
  IQ4_NL: {
    ...{ ...small, ...eight, bytes: 18 },
    decode(block, { levels, scales }) {
      scales[0] = half(block, 0);
      nibbles(block, 2, levels, 0, (level) => at(IQ4, level) + 128);
    },
  },
  IQ4_XS: {
    ...{ ...large, ...eight, group: 32, bytes: 136 },
    decode(block, { levels, scales }) {
      const scale = half(block, 0);
      const highs = byte(block, 2) | (byte(block, 3) << 8);
      for (let group = 0; group < 8; group++) {
        const low = (byte(block, 4 + (group >> 1)) >> (4 * (group & 1))) & 15;
        scales[group] = scale * ((low | (((highs >> (2 * group)) & 3) << 4)) - 32);
        nibbles(block, 8 + 16 * group, levels, 32 * group, (level) => at(IQ4, level) + 128);
      }
    },
  },
  MXFP4: {
    ...{ ...small, ...eight, bytes: 17 },
    decode(block, { levels, scales }) {
      scales[0] = 2 ** (byte(block, 0) - 128);
      nibbles(block, 1, levels, 0, (level) => at(E2M1, level) + 128);
    },
  },
};

function byte(block: Uint8Array, index: number): number {
  return block[index] ?? 0;
}

function signed(value: number): number {
  return (value << 24) >> 24;
}

function half(block: Uint8Array, index: number): number {
  return fromHalf(byte(block, index) | (byte(block, index + 1) << 8));
}

/** Decodes 16 bytes of two levels each: the low halves are the first 16 weights. */
function nibbles(
  block: Uint8Array,
  from: number,
  levels: Uint8Array,
  to: number,
  level: (nibble: number, place: number) => number,
): void {
  for (let place = 0; place < 16; place++) {
    const both = byte(block, from + place);
    levels[to + place] = level(both & 15, place);
    levels[to + 16 + place] = level(both >> 4, 16 + place);
  }
}

function fifthBit(block: Uint8Array, from: number, place: number): number {
  return ((byte(block, from + (place >> 3)) >> (place & 7)) & 1) << 4;
}

/** Tells where two bits of a weight are: in which half of the block, in which bits of a byte, and in which byte. */
function planes(place: number): [part: number, plane: number, column: number] {
  return [place >> 7, (place >> 5) & 3, place & 31];
}

/** Returns a level of 4 bits: 32 bytes have those of 32 weights in their low halves, and of the next 32 in the high. */
function halfByte(block: Uint8Array, from: number, place: number): number {
  return (byte(block, from + 32 * (place >> 6) + (place & 31)) >> ((place >> 5) & 1 ? 4 : 0)) & 15;
}

/** Decodes eight scales and eight minima of 6 bits, in 12 bytes, with their own factors before them. */
function sixBitScales(block: Uint8Array, scales: Float32Array, mins: Float32Array): void {
  const [scale, min] = [half(block, 0), half(block, 2)];
  const packed = (index: number) => byte(block, 4 + index);
  for (let group = 0; group < 8; group++) {
    const high = group >= 4;
    const ownScale = high ? (packed(group + 4) & 15) | ((packed(group - 4) >> 6) << 4) : packed(group) & 63;
    const ownMin = high ? (packed(group + 4) >> 4) | ((packed(group) >> 6) << 4) : packed(group + 4) & 63;
    scales[group] = scale * ownScale;
    mins[group] = -min * ownMin;
  }
}

/** Describes a tensor whose rows are blocks (`StoredTensor`). */
interface Blocks {
  dtype: string;
  dims: number[];
  data: TensorData;
}

/** Returns the type of a tensor's blocks; undefined for floats. */
export function blockType({ dtype }: Blocks): BlockType | undefined {
  return Object.hasOwn(BLOCK_TYPES, dtype) ? BLOCK_TYPES[dtype] : undefined;
}

/** Decodes `count` rows of a tensor of blocks from the row `first` on, one level a byte. */
function decodedRows({ dims, data }: Blocks, type: BlockType, first: number, count: number): Decoded {
  const { elements, bytes, group, decode } = type;
  const columns = at(dims, dims.length - 1);
  const rowBytes = (columns / elements) * bytes;
  const blocks = (count * columns) / elements;
  const groups = elements / group;
  const decoded = {
    levels: new Uint8Array(count * columns),
    scales: new Float32Array(blocks * groups),
    mins: new Float32Array(blocks * groups),
  };
  const reader = openData(data);
  try {
    const packed = reader.read(first * rowBytes, (first + count) * rowBytes);
    for (let block = 0; block < blocks; block++) {
      const [place, part] = [block * elements, block * groups];
      decode(packed.subarray(block * bytes, (block + 1) * bytes), {
        levels: decoded.levels.subarray(place, place + elements),
        scales: decoded.scales.subarray(part, part + groups),
        mins: decoded.mins.subarray(part, part + groups),
      });
    }
  } finally {
    reader.close();
  }
  return decoded;
}

/**
 * Returns a tensor of blocks as one of 32-bit floats, computed when it is read, as GGML computes them. A matrix keeps
 * its blocks beside the floats.
 */
export function asFloats<Stored extends Blocks>(stored: Stored, type: BlockType): Stored {
  const { bits, group, zero, min } = type;
  const columns = at(stored.dims, stored.dims.length - 1);
  const rows = stored.dims.slice(0, -1).reduce((product, dim) => product * dim, 1);
  const data = computedRows(rows, columns, (first, count) => {
    const { levels, scales, mins } = decodedRows(stored, type, first, count);
    const floats = new Float32Array(levels.length);
    for (let own = 0; own < scales.length; own++) {
      const [scale, least] = [scales[own] ?? 0, mins[own] ?? 0];
      for (let place = own * group; place < (own + 1) * group; place++) {
        const value = ((levels[place] ?? 0) - zero) * scale;
        // GGML rounds the product to 32 bits before it adds the minimum.
        floats[place] = min ? Math.fround(value) + least : value;
      }
    }
    return floats;
  });
  const read = (first: number, count: number) => decodedRows(stored, type, first, count);
  const blocks = stored.dims.length === 2 ? { blocks: { bits, size: group, zero, min, read } } : {};
  return { ...stored, dtype: 'F32', data: { ...data, ...blocks } };
}
