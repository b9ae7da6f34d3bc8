import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { fixture, readFixture } from '../../../tests/fixture.ts';
import { decodeAudio } from './decode-audio.ts';
import { logMel } from './log-mel.ts';

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
  const { stride, cases } = JSON.parse(readFixture(`media/${model}/golden.json`)) as Golden;
  const files = cases.flatMap(({ parts, mel }) =>
    parts.flatMap(({ file }) => file ?? []).map((file, i) => ({ file, values: mel[i]! })),
  );
  return [...new Map(files.map((one) => [one.file, { model, stride, ...plan, ...one }])).values()];
});

it.each(known)('$file for $model: log-mel values are those of transformers', async (one) => {
  const { file, values, stride, bands, frames } = one;
  const samples = await decodeAudio(readFileSync(fixture(`media/audio/${file}`)));
  const found = logMel(samples, { bands, frames: frames(samples.length), chunkFrames: 3000 });
  expect(values.length).toBeGreaterThanOrEqual(Math.min(3000, Math.floor(found.length / stride)));
  expect(Math.max(...values.map((value, i) => Math.abs(value - found[i * stride]!)))).toBeLessThan(1e-5);
});
