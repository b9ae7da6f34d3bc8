import { at } from '../../../lib/at.ts';

/** Describes what a block's levels mean: the value of a weight is `(level - zero) * scale`. */
export interface FittedBlock {
  scale: number;
  zero: number;
}

/**
 * Fractions of a block's range of values over which the 16 levels may be spread. Clipping the outermost values makes
 * all others more exact. Measured on the weights of SmolLM2 and on normally distributed ones: these three fractions
 * leave at most 2% more error than eight do.
 */
const RANGES = [1, 0.92, 0.84];
const LEVELS = 16;

/**
 * Quantizes a block of weights to 4 bits. Chooses the zero point, the clipping ratio of `RANGES` that minimises the
 * squared error, and the least-squares scale for the resulting levels. Writes one level (0 to 15) per weight to
 * `levels`.
 */
export function fitBlock(values: Float32Array, levels: Uint8Array): FittedBlock {
  let low = 0;
  let high = 0;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const top = LEVELS - 1;
  if (low === high) {
    levels.fill(LEVELS / 2);
    return { scale: 1, zero: LEVELS / 2 };
  }
  const zero = Math.round((-low * top) / (high - low));
  let best = { explained: -1, step: 1, scale: 1 };
  for (const range of RANGES) {
    const step = ((high - low) * range) / top;
    let product = 0;
    let square = 0;
    for (let i = 0; i < values.length; i++) {
      const level = levelOf(values[i]!, step, zero) - zero;
      product += values[i]! * level;
      square += level * level;
    }
    // With the scale of least squares, the squared error is the sum of the squared values minus this.
    const explained = square > 0 ? (product * product) / square : 0;
    if (explained > best.explained) best = { explained, step, scale: square > 0 ? product / square : step };
  }
  for (let i = 0; i < values.length; i++) levels[i] = levelOf(values[i]!, best.step, zero);
  return { scale: best.scale, zero };
}

/**
 * Quantizes a block of weights with the zero point in the middle, as onnxruntime's quantizer does and compilers for
 * NPUs require. The value of largest magnitude becomes the lowest level, so the scale has the opposite sign of that
 * value. Writes the levels to `levels`.
 */
export function centreBlock(values: Float32Array, levels: Uint8Array, bits: 4 | 8): FittedBlock {
  const zero = 1 << (bits - 1);
  let extreme = 0;
  for (const value of values) if (Math.abs(value) > Math.abs(extreme)) extreme = value;
  const scale = extreme === 0 ? 1 : extreme / -zero;
  for (let i = 0; i < values.length; i++) {
    levels[i] = Math.max(0, Math.min(2 * zero - 1, Math.round(at(values, i) / scale) + zero));
  }
  return { scale, zero };
}

function levelOf(value: number, step: number, zero: number): number {
  return Math.max(0, Math.min(LEVELS - 1, Math.round(value / step) + zero));
}
