/**
 * Describes the KV of a model: its layers, its float type, the buffer lengths that its graphs accept, and the states of
 * its recurrent layers.
 */
export interface KvShape {
  layers: readonly { heads: number; headSize: number }[];
  /** True if keys and values are 16-bit floats; false or absent for 32-bit floats. */
  half?: boolean;
  /** Buffer lengths, in cells, that the model accepts without a copy, ascending. Absent if it accepts any length. */
  capacities?: readonly number[];
  /** Number of floats of each state of the recurrent layers; absent if the model has none. */
  states?: readonly number[];
}

/** Represents keys or values of a layer: 32-bit floats, or the bits of 16-bit floats if `KvShape.half`. */
export type KvBuffer = Float32Array | Uint16Array;

/**
 * Holds the keys and values of a layer: `[heads, capacity, headSize]` each, as GroupQueryAttention writes them in
 * place.
 */
export interface KvLayerBuffers {
  key: KvBuffer;
  value: KvBuffer;
}

/** Returns a layer's keys or values unchanged if they are 32-bit floats. Throws if they are 16-bit floats. */
export function floatBuffer(buffer: KvBuffer): Float32Array {
  if (!(buffer instanceof Float32Array))
    throw new Error('16-bit keys and values were given to a graph with 32-bit ones');
  return buffer;
}

/** Returns the number of bytes of the keys and values of one cell, over all layers. */
export function cellBytes({ layers, half }: KvShape): number {
  const elements = layers.reduce((sum, { heads, headSize }) => sum + 2 * heads * headSize, 0);
  return elements * (half ? Uint16Array : Float32Array).BYTES_PER_ELEMENT;
}
