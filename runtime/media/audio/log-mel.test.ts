import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { decodeAudio } from './decode-audio.ts';
import { logMel } from './log-mel.ts';

const fixture = (path: string) => fileURLToPath(new URL(`../../../tests/fixtures/media/${path}`, import.meta.url));
interface Golden {
  stride: number;
  /** `mel`: for each recording, every `stride`th value of transformers' feature extractor, `[chunks, 128, 3000]`. */
  cases: { parts: { type: string; file?: string }[]; mel: number[][] }[];
}
const { stride, cases } = JSON.parse(readFileSync(fixture('voxtral/golden.json'), 'utf8')) as Golden;
const known = new Map(
  cases.flatMap(({ parts, mel }) => parts.flatMap(({ file }) => file ?? []).map((file, i) => [file, mel[i]!])),
);

it.each([...known])('%s: log-mel values are those of transformers', async (file, values) => {
  const samples = await decodeAudio(readFileSync(fixture(`audio/${file}`)));
  const chunkSamples = 30 * 16_000;
  const found = logMel(samples, { bands: 128, chunkSamples, chunks: Math.ceil(samples.length / chunkSamples) });
  expect(values.length).toBeGreaterThan(1500);
  expect(Math.max(...values.map((value, i) => Math.abs(value - found[i * stride]!)))).toBeLessThan(1e-5);
});
