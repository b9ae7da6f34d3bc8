import type { MediaKind } from '../../lib/contract/conversation.ts';

/**
 * Name of the graph that encodes each kind of media in the layout of transformers.js, without the suffix of its number
 * format.
 */
export const ENCODERS = { image: 'vision_encoder', audio: 'audio_encoder' } as const satisfies Readonly<
  Record<MediaKind, string>
>;

/**
 * Kind of media that the models of each supported family read besides text, by `model_type` in `config.json`
 * (docs/media.md).
 */
export const MEDIA_FAMILIES = {
  gemma4: 'image',
  idefics3: 'image',
  smolvlm: 'image',
  qwen2_vl: 'image',
  qwen2_5_vl: 'image',
  qwen3_vl: 'image',
  ultravox: 'audio',
  voxtral: 'audio',
} as const satisfies Readonly<Record<string, MediaKind>>;

/** Names the model type of a supported family. */
export type MediaFamilyName = keyof typeof MEDIA_FAMILIES;

/** Advice at the end of each refusal of media. */
export const INSTEAD =
  'Send text alone, or load a model of the SmolVLM or Qwen-VL family for images, of the Voxtral or Ultravox family for audio.';

const BOTH_DIRECTIONS =
  'its image tokens must attend to each other in both directions, but in the published graphs they attend only to earlier tokens';

/**
 * Model types whose image tokens attend in both directions, although their configuration does not state it. Others
 * state it (`bothDirections`).
 */
const ATTEND_IN_BOTH_DIRECTIONS = ['gemma3'];

/** Tells whether a model type is that of a supported family. */
export function isMediaFamily(type: string): type is MediaFamilyName {
  return Object.hasOwn(MEDIA_FAMILIES, type);
}

/** Describes what a model's configuration says about its media. */
export interface PublishedMedia {
  /** `model_type` in `config.json`. */
  modelType: string;
  /** Kinds of media for which the model has an encoder. */
  encoded: readonly MediaKind[];
  /** True if `use_bidirectional_attention` says that the tokens of an image attend to each other in both directions. */
  bothDirections: boolean;
}

/** Returns the kind of media that a model reads here besides text; null if it is not known to read any. */
export function mediaRead({ modelType, bothDirections }: PublishedMedia): MediaKind | null {
  return isMediaFamily(modelType) && !bothDirections ? MEDIA_FAMILIES[modelType] : null;
}

/**
 * Returns the error message for images or audio that the original model reads, but Assay does not; null if the model
 * reads them here, or never reads any.
 */
export function mediaRefusal(media: PublishedMedia): string | null {
  const { modelType, encoded, bothDirections } = media;
  const inBoth = bothDirections || ATTEND_IN_BOTH_DIRECTIONS.includes(modelType);
  if (mediaRead(media) !== null || (!inBoth && encoded.length === 0)) return null;
  const kinds = encoded.length === 2 ? 'Images and audio' : encoded[0] === 'audio' ? 'Audio' : 'Images';
  const reason = inBoth ? BOTH_DIRECTIONS : 'how its family reads them is not known here';
  return `${kinds} ${kinds === 'Audio' ? 'is' : 'are'} refused with this model (${modelType}): ${reason}. ${INSTEAD}`;
}
