import { at } from '../../lib/at.ts';
import type { LastLayer } from './contract.ts';

/** Holds the weights `[dim, hidden]` and bias `[dim]` of a projection. */
export interface Projection {
  weight: Float32Array;
  bias: Float32Array;
}

/** Holds the gain and bias of a normalisation, `[hidden]`. */
export interface Norm {
  gain: Float32Array;
  bias: Float32Array;
}

/** Returns the layer with the outputs of a query and a key projection, one after the other. */
export function pointerLayer(dim: number, parts: { query: Projection; key: Projection; norm?: Norm }): LastLayer {
  const { query, key, norm } = parts;
  const projections = norm ? [withNorm(query, norm), withNorm(key, norm)] : [query, key];
  return stacked(dim, projections, norm !== undefined);
}

/** Stacks the outputs of several projections in one layer. */
export function stacked(dim: number, projections: readonly Projection[], normalised: boolean): LastLayer {
  return {
    width: dim * projections.length,
    normalised,
    weight: joined(projections.map(({ weight }) => weight)),
    bias: joined(projections.map(({ bias }) => bias)),
  };
}

/** Moves the gain and bias of a normalisation into the projection that follows it. */
export function withNorm({ weight, bias }: Projection, { gain, bias: shift }: Norm): Projection {
  const hidden = gain.length;
  const scaled = weight.map((value, i) => value * at(gain, i % hidden));
  const moved = bias.map((value, row) => {
    let sum = value;
    for (let i = 0; i < hidden; i++) sum += at(weight, row * hidden + i) * at(shift, i);
    return sum;
  });
  return { weight: scaled, bias: moved };
}

/** Returns the scaled dot products of the deciding token's query with the options' keys. */
export function pointerLogits(dim: number, options: readonly Float32Array[], decide: Float32Array): number[] {
  return options.map((option) => dot(option.subarray(dim, 2 * dim), decide.subarray(0, dim)) / Math.sqrt(dim));
}

/** Returns the dot product of two vectors, summed in 64 bits. */
export function dot(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += (one[i] ?? 0) * (other[i] ?? 0);
  return sum;
}

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}
