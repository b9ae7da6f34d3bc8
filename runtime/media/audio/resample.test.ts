import { describe, expect, it } from 'vitest';
import { Resampler } from './resample.ts';

const sine = (hertz: number, rate: number, seconds: number) =>
  Float32Array.from({ length: Math.round(rate * seconds) }, (_, i) => 0.5 * Math.sin((2 * Math.PI * hertz * i) / rate));

/** Resamples a recording to 16 kHz that arrives in pieces of `piece` samples. */
function resampled(samples: Float32Array, from: number, piece: number): number[] {
  const resampler = new Resampler(from, 16_000);
  const made: number[] = [];
  for (let at = 0; at < samples.length; at += piece) made.push(...resampler.push(samples.subarray(at, at + piece)));
  return [...made, ...resampler.end()];
}

/**
 * Returns the largest difference between two recordings. Ignores both ends, where the tone begins and ends abruptly.
 */
function worst(found: readonly number[], expected: Float32Array): number {
  return Math.max(...found.slice(800, -800).map((value, i) => Math.abs(value - expected[800 + i]!)));
}

describe.each([8000, 11_025, 15_999, 22_050, 32_000, 44_100, 44_101, 48_000, 96_000, 192_000])('from %d Hz', (rate) => {
  it('keeps a tone, and removes one that 16 kHz cannot hold', () => {
    const seconds = 0.25;
    const kept = resampled(sine(1000, rate, seconds), rate, 1000);
    expect(kept.length).toBe(Math.ceil(Math.round(rate * seconds) * (16_000 / rate)));
    expect(worst(kept, sine(1000, 16_000, seconds))).toBeLessThan(2e-5);
    if (rate < 32_000) return;
    const removed = resampled(sine(12_000, rate, seconds), rate, 1000);
    expect(worst(removed, new Float32Array(4000))).toBeLessThan(2e-4);
  });

  it('gives the same in pieces of any size', () => {
    const tone = sine(440, rate, 0.05);
    const whole = resampled(tone, rate, tone.length);
    for (const piece of [1, 7, 4096]) expect(resampled(tone, rate, piece)).toEqual(whole);
  });
});

it('leaves 16 kHz as it is', () => {
  const tone = sine(440, 16_000, 0.1);
  expect(resampled(tone, 16_000, 100)).toEqual([...tone]);
});

it('computes only the filters that a short recording needs', () => {
  const before = process.memoryUsage().arrayBuffers;
  // The filters of all 16,000 phases take 49 MB.
  expect(resampled(sine(1000, 191_999, 0.001), 191_999, 100)).toHaveLength(17);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10e6);
});
