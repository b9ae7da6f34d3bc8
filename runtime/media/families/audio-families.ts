import * as v from 'valibot';
import { PREPARED_RATE } from '../audio/limits.ts';
import { HOP, MOST_CHUNK_FRAMES } from '../media-plan.ts';
import type { AudioFamily } from './family.ts';

const Count = v.pipe(v.number(), v.integer(), v.minValue(1));

/** Schema of the fields that this family needs of its published files (`config.json`, `preprocessor_config.json`). */
export const VoxtralConfig = v.object({
  config: v.looseObject({
    audio_token_id: v.pipe(v.number(), v.integer(), v.minValue(0)),
    audio_config: v.looseObject({
      hidden_size: Count,
      intermediate_size: Count,
      max_source_positions: v.pipe(Count, v.maxValue(1500)),
    }),
  }),
  preprocessor: v.looseObject({
    feature_size: v.picklist([80, 128]),
    sampling_rate: v.literal(PREPARED_RATE),
    n_fft: v.literal(400),
    hop_length: v.literal(160),
    n_samples: v.pipe(Count, v.maxValue(30 * PREPARED_RATE), v.multipleOf(160)),
  }),
});
export type VoxtralConfig = v.InferOutput<typeof VoxtralConfig>;

const [AUDIO, BEGIN] = ['[AUDIO]', '[BEGIN_AUDIO]'];

/**
 * Creates the family of Voxtral, which reads a recording in chunks of 30 s with the same number of tokens each. Source:
 * transformers 4.57, `processing_voxtral.py` and `modeling_voxtral.py`; mistral-common 1.8, `audio.py`.
 */
export function voxtral({ config, preprocessor }: VoxtralConfig): AudioFamily {
  const { feature_size: bands, n_samples: chunkSamples } = preprocessor;
  const { hidden_size, intermediate_size, max_source_positions } = config.audio_config;
  // The projector joins neighbouring positions of the encoder's output into one feature.
  const perChunk = (max_source_positions * hidden_size) / intermediate_size;
  if (!Number.isInteger(perChunk)) throw new Error('the encoder and its projector do not fit each other');
  return {
    kind: 'audio',
    mark: AUDIO,
    token: config.audio_token_id,
    inputNames: ['audio_values'],
    output: 'audio_features',
    layout(samples) {
      const chunks = Math.ceil(samples / chunkSamples);
      const tokens = chunks * perChunk;
      const chunkFrames = chunkSamples / HOP;
      return {
        plan: { bands, frames: chunks * chunkFrames, chunkFrames },
        text: `${BEGIN}${AUDIO.repeat(tokens)}`,
        tokens,
      };
    },
    inputs(chunk) {
      const data = new Float32Array(chunk.slice().buffer);
      return [{ name: 'audio_values', type: 'float32', data, dims: [1, bands, data.length / bands] }];
    },
  };
}

const StackFactor = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(64));

/**
 * Schema of the fields that this family needs of its published files (`config.json`, `preprocessor_config.json`,
 * `processor_config.json`).
 */
export const UltravoxConfig = v.object({
  config: v.looseObject({
    // Id of the audio token in the layout for transformers.js. The default, -100, means that there is none.
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

/** Number of frames that the encoder's second convolution joins into one. */
const CONVOLUTION_STRIDE = 2;
/** Minimum number of frames of a recording. A shorter one is padded with silence. */
const LEAST_FRAMES = 2;

/**
 * Creates the family of Ultravox, which reads a recording in chunks of 30 s, each with tokens in proportion to its
 * length. The original code pads the last chunk of a longer recording with silence, which its encoder ignores. The
 * published graph cannot ignore silence, so it gets the last chunk without padding. Source: `ultravox_processing.py`
 * and `ultravox_model.py` of fixie-ai/ultravox 0.6.
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
    // The graphs of older versions output one feature more, which is computed from padding alone.
    used: (chunk) => tokensOf(chunk.length / 4 / bands),
  };
}
