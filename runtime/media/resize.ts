import { at } from '../../lib/at.ts';
import type { Filter } from './pixel-plan.ts';

/** Holds an image with 8-bit red, green and blue values, row by row. */
export interface RgbImage {
  width: number;
  height: number;
  data: Uint8Array;
}

const CHANNELS = 3;
/** Fraction bits of a fixed-point coefficient: 32, minus 8 for the pixel's value and 2 for sums beyond its range. */
const PRECISION = 22;

/**
 * Resizes an image to `width` × `height` pixels, to exactly the same bytes as Pillow 12, which Python's image
 * processors use: first along rows, then along columns, with fixed-point coefficients and rounding to 8 bits after each
 * pass. Source: Pillow 12, `src/libImaging/Resample.c`.
 */
export function resize(image: RgbImage, width: number, height: number, filter: Filter): RgbImage {
  const wide = width === image.width ? image : resizeRows(image, width, filter);
  return height === wide.height ? wide : resizeColumns(wide, height, filter);
}

interface Weights {
  /** Index of the first input pixel that each output pixel depends on. */
  first: Int32Array;
  /** Number of input pixels that each output pixel depends on. */
  count: Int32Array;
  /** Fixed-point coefficients, `taps` for each output pixel. */
  coefficients: Int32Array;
  taps: number;
}

function resizeRows({ width: from, height, data }: RgbImage, width: number, filter: Filter): RgbImage {
  const { first, count, coefficients, taps } = weightsOf(from, width, filter);
  const resized = new Uint8Array(width * height * CHANNELS);
  for (let y = 0, into = 0; y < height; y++) {
    const row = y * from * CHANNELS;
    for (let x = 0; x < width; x++) {
      let [red, green, blue] = [HALF, HALF, HALF];
      let pixel = row + at(first, x) * CHANNELS;
      for (let tap = x * taps, end = tap + at(count, x); tap < end; tap++, pixel += CHANNELS) {
        const weight = coefficients[tap] ?? 0;
        red += (data[pixel] ?? 0) * weight;
        green += (data[pixel + 1] ?? 0) * weight;
        blue += (data[pixel + 2] ?? 0) * weight;
      }
      resized[into++] = clipped(red);
      resized[into++] = clipped(green);
      resized[into++] = clipped(blue);
    }
  }
  return { width, height, data: resized };
}

function resizeColumns({ width, height: from, data }: RgbImage, height: number, filter: Filter): RgbImage {
  const { first, count, coefficients, taps } = weightsOf(from, height, filter);
  const line = width * CHANNELS;
  const resized = new Uint8Array(line * height);
  const sums = new Float64Array(line);
  for (let y = 0; y < height; y++) {
    sums.fill(HALF);
    for (let tap = 0; tap < at(count, y); tap++) {
      const weight = at(coefficients, y * taps + tap);
      const row = (at(first, y) + tap) * line;
      for (let i = 0; i < line; i++) sums[i] = (sums[i] ?? 0) + (data[row + i] ?? 0) * weight;
    }
    for (let i = 0; i < line; i++) resized[y * line + i] = clipped(sums[i] ?? 0);
  }
  return { width, height, data: resized };
}

const HALF = 2 ** (PRECISION - 1);

function clipped(sum: number): number {
  const value = Math.floor(sum / 2 ** PRECISION);
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

function weightsOf(from: number, to: number, filter: Filter): Weights {
  const { support: reach, weight } = KERNELS[filter];
  const scale = from / to;
  // When an image shrinks, the filter is widened: otherwise some pixels would not contribute.
  const stretch = Math.max(scale, 1);
  const support = reach * stretch;
  const taps = Math.ceil(support) * 2 + 1;
  const first = new Int32Array(to);
  const count = new Int32Array(to);
  const coefficients = new Int32Array(to * taps);
  for (let x = 0; x < to; x++) {
    const centre = (x + 0.5) * scale;
    const start = Math.max(0, Math.trunc(centre - support + 0.5));
    const end = Math.min(from, Math.trunc(centre + support + 0.5));
    const weights = Array.from({ length: end - start }, (_, i) => weight((i + start - centre + 0.5) * (1 / stretch)));
    const sum = weights.reduce((total, one) => total + one, 0);
    first[x] = start;
    count[x] = weights.length;
    for (const [i, one] of weights.entries()) {
      const exact = (sum === 0 ? one : one / sum) * 2 ** PRECISION;
      coefficients[x * taps + i] = Math.trunc(exact < 0 ? exact - 0.5 : exact + 0.5);
    }
  }
  return { first, count, coefficients, taps };
}

const KERNELS: Record<Filter, { support: number; weight(x: number): number }> = {
  box: { support: 0.5, weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) },
  bilinear: { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  hamming: { support: 1, weight: (x) => (Math.abs(x) >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * Math.cos(Math.PI * x))) },
  bicubic: { support: 2, weight: (x) => cubic(Math.abs(x)) },
  lanczos: { support: 3, weight: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0) },
};

function sinc(x: number): number {
  const angle = x * Math.PI;
  return angle === 0 ? 1 : Math.sin(angle) / angle;
}

/** Returns the value of Keys' cubic convolution kernel with a = −0.5. */
function cubic(x: number): number {
  const a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
