import { at } from '../../../lib/at.ts';

/** Describes what the levels of a block mean: `value = (level - zero) * scale`. */
export interface FittedBlock {
  scale: number;
  zero: number;
}

/**
 * Shares of a block's range that 16 levels are spread over. Cutting the outermost values makes all others more exact.
 * Measured on the weights of SmolLM2 and on normal ones: these three leave at most 2% more error than eight.
 */
const RANGES = [1, 0.92, 0.84];
const LEVELS = 16;

/**
 * Chooses 4-bit levels for a block of weights, with the zero point and the range that leave the least squared error,
 * and the scale that fits these levels best. Writes the levels into `levels`.
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
    // The squared error is the values' square less this, with the scale of least squares.
    const explained = square > 0 ? (product * product) / square : 0;
    if (explained > best.explained) best = { explained, step, scale: square > 0 ? product / square : step };
  }
  for (let i = 0; i < values.length; i++) levels[i] = levelOf(values[i]!, best.step, zero);
  return { scale: best.scale, zero };
}

/**
 * Chooses levels around a zero in the middle, as onnxruntime's quantizer does and compilers for NPUs need: the value of
 * largest magnitude becomes the lowest level, so its sign is the sign of the scale. Writes them into `levels`.
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
