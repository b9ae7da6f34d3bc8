import * as v from 'valibot';
import { PREPARED_RATE } from '../audio/limits.ts';
import { HOP } from '../audio/mel-plan.ts';
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
