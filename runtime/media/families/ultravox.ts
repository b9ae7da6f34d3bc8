import * as v from 'valibot';
import { PREPARED_RATE } from '../audio/limits.ts';
import { HOP, MOST_CHUNK_FRAMES } from '../audio/mel-plan.ts';
import type { AudioFamily } from './family.ts';

const StackFactor = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(64));

/**
 * Checks what the published files of the family say (`config.json`, `preprocessor_config.json`,
 * `processor_config.json`).
 */
export const UltravoxConfig = v.object({
  config: v.looseObject({
    // The id of the audio token, in the layout for transformers.js; -100, the default, is none.
    ignore_index: v.pipe(v.number(), v.integer(), v.minValue(0)),
    stack_factor: v.optional(StackFactor, 8),
  }),
  preprocessor: v.looseObject({
    feature_size: v.picklist([80, 128]),
    sampling_rate: v.literal(PREPARED_RATE),
    n_fft: v.literal(400),
    hop_length: v.literal(HOP),
  }),
  processor: v.nullish(v.looseObject({ audio_placeholder: v.optional(v.string()) })),
});
export type UltravoxConfig = v.InferOutput<typeof UltravoxConfig>;

/** Frames that the encoder's second convolution makes one of. */
const CONVOLUTION_STRIDE = 2;
/** A recording has two frames at least: shorter ones are filled with silence. */
const LEAST_FRAMES = 2;

/**
 * Creates the family of Ultravox: chunks of 30 s, each with as many tokens as it is long. The makers fill the last
 * chunk of a longer recording with silence that the encoder ignores; the published graph cannot, and gets the chunk as
 * long as it is. Source: `ultravox_processing.py` and `ultravox_model.py` of fixie-ai/ultravox 0.6.
 */
export function ultravox({ config, preprocessor, processor }: UltravoxConfig): AudioFamily {
  const { feature_size: bands } = preprocessor;
  const mark = processor?.audio_placeholder ?? '<|audio|>';
  const framesPerToken = CONVOLUTION_STRIDE * config.stack_factor;
  const tokensOf = (frames: number) => Math.ceil(frames / framesPerToken);
  return {
    kind: 'audio',
    mark,
    inText: true,
    token: config.ignore_index,
    inputNames: ['audio_values'],
    output: 'audio_features',
    layout(samples) {
      const frames = Math.max(LEAST_FRAMES, Math.ceil(samples / HOP));
      const rest = frames % MOST_CHUNK_FRAMES;
      const tokens = ((frames - rest) / MOST_CHUNK_FRAMES) * tokensOf(MOST_CHUNK_FRAMES) + tokensOf(rest);
      return { plan: { bands, frames, chunkFrames: MOST_CHUNK_FRAMES }, text: mark.repeat(tokens), tokens };
    },
    inputs(chunk) {
      const data = new Float32Array(chunk.slice().buffer);
      return [{ name: 'audio_values', type: 'float32', data, dims: [1, bands, data.length / bands] }];
    },
    // The graphs of older versions give one more, of nothing but filling.
    used: (chunk) => tokensOf(chunk.length / 4 / bands),
  };
}
