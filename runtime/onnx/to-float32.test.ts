import { expect, test } from 'vitest';
import { fromHalf, roundToHalf } from './to-float32.ts';

test('numbers are rounded to the nearest float of 16 bits, and those between two to the even one', () => {
  for (let bits = 0; bits < 0x7bff; bits++) {
    const [low, high] = [fromHalf(bits), fromHalf(bits + 1)];
    const even = bits % 2 === 0 ? low : high;
    const [rounded, between] = [roundToHalf(low), roundToHalf((low + high) / 2)];
    if (rounded !== low || between !== even || roundToHalf(-low) !== -low) expect.fail(`${low} becomes ${rounded}`);
    if (roundToHalf(low + (high - low) * 0.51) !== high) expect.fail(`${low} is not rounded up`);
  }
});
