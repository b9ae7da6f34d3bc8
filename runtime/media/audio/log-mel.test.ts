import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { decodeAudio } from './decode-audio.ts';
import { logMel } from './log-mel.ts';

const fixture = (path: string) => fileURLToPath(new URL(`../../../tests/fixtures/media/${path}`, import.meta.url));
interface Golden {
  stride: number;
  /**
   * `mel` has, for each recording, every `stride`th value of transformers' feature extractor, one chunk after another.
   */
  cases: { parts: { type: string; file?: string }[]; mel: number[][] }[];
}
/**
 * Number of frames for each model, in chunks of 30 s. Voxtral pads the last chunk with silence; Ultravox ends it with
 * the recording.
 */
const MODELS = [
  { model: 'voxtral', bands: 128 as const, frames: (samples: number) => Math.ceil(samples / 480_000) * 3000 },
  { model: 'ultravox', bands: 80 as const, frames: (samples: number) => Math.ceil(samples / 160) },
];
const known = MODELS.flatMap(({ model, ...plan }) => {
  const { stride, cases } = JSON.parse(readFileSync(fixture(`${model}/golden.json`), 'utf8')) as Golden;
  const files = cases.flatMap(({ parts, mel }) =>
    parts.flatMap(({ file }) => file ?? []).map((file, i) => ({ file, values: mel[i]! })),
  );
  return [...new Map(files.map((one) => [one.file, { model, stride, ...plan, ...one }])).values()];
});

it.each(known)('$file for $model: log-mel values are those of transformers', async (one) => {
  const { file, values, stride, bands, frames } = one;
  const samples = await decodeAudio(readFileSync(fixture(`audio/${file}`)));
  const found = logMel(samples, { bands, frames: frames(samples.length), chunkFrames: 3000 });
  expect(values.length).toBeGreaterThanOrEqual(Math.min(3000, Math.floor(found.length / stride)));
  expect(Math.max(...values.map((value, i) => Math.abs(value - found[i * stride]!)))).toBeLessThan(1e-5);
});
