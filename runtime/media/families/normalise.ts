import { at } from '../../../lib/at.ts';

/**
 * Returns a function that converts RGB pixels of three bytes to floats, one plane for each channel after another,
 * exactly as numpy computes `(pixel * scale - mean) / std` in 32 bits.
 */
export function normalisation(
  scale: number,
  mean: readonly number[],
  std: readonly number[],
): (pixels: Uint8Array) => Float32Array {
  const f = Math.fround;
  const tables = mean.map((middle, channel) =>
    Float32Array.from({ length: 256 }, (_, value) => f(f(f(value * scale) - f(middle)) / f(at(std, channel)))),
  );
  return (pixels) => {
    const plane = pixels.length / 3;
    const floats = new Float32Array(pixels.length);
    for (const [channel, table] of tables.entries()) {
      for (let i = 0, from = channel; i < plane; i++, from += 3)
        floats[channel * plane + i] = table[pixels[from] ?? 0] ?? 0;
    }
    return floats;
  };
}
