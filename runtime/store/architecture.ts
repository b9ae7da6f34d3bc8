import * as v from 'valibot';
import type { MediaKind } from '../../lib/contract/conversation.ts';
import { type EncoderContract, findEncoderContract } from '../contracts/encoder-contracts.ts';
import { type PublishedFiles, RefusedContract } from '../contracts/published-files.ts';
import { encoderConfig, encoderRefusal } from '../graph/encoder-graph.ts';
import { architectureRefusal } from '../graph/families.ts';
import { GenaiConfig, genaiFamily, genaiMediaRefusal, genaiRefusal } from './genai-config.ts';
import { INSTEAD, MEDIA_FAMILIES, mediaRead, mediaRefusal, type PublishedMedia } from './media-models.ts';

/** Model types (`model_type`) that cannot run here in any published format, with the reason and what to use instead. */
const REFUSED: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['mamba', 'mamba2', 'falcon_mamba', 'rwkv', 'xlstm', 'recurrent_gemma'].map((type) => [
      type,
      'it has no attention at all, and the engine needs a KV cache; use a model with attention',
    ]),
  ),
  ...Object.fromEntries(
    ['jamba', 'bamba', 'zamba', 'zamba2', 'nemotron_h', 'falcon_h1'].map((type) => [
      type,
      'its Mamba layers are not supported; LFM2 and Qwen 3.5 are hybrids that are',
    ]),
  ),
  granite_speech:
    'no exporter that was tried supports it, so its results could not be compared with those of PyTorch; use Voxtral or Ultravox for audio, or Granite for text',
};
/** Matches the class names of models that generate text. */
const GENERATES = /(?:CausalLM|LMHeadModel|ConditionalGeneration)$/;
/** Bytes of one number in the KV cache (float32). */
const FLOAT = 4;

const Count = v.optional(v.fallback(v.nullable(v.pipe(v.number(), v.integer(), v.minValue(1))), null), null);
const Texts = v.optional(v.fallback(v.array(v.string()), []), []);
const Shape = v.looseObject({
  model_type: v.optional(v.fallback(v.string(), ''), ''),
  hidden_size: Count,
  num_hidden_layers: Count,
  num_attention_heads: Count,
  num_key_value_heads: Count,
  head_dim: Count,
  layer_types: Texts,
  /** True for the Gemma 4 models with experts. */
  enable_moe_block: v.optional(v.fallback(v.boolean(), false), false),
  /** `vision` if image tokens attend to each other in both directions, as in larger Gemma 4 models. */
  use_bidirectional_attention: v.optional(v.unknown()),
});
const Config = v.looseObject({
  ...Shape.entries,
  architectures: Texts,
  is_encoder_decoder: v.optional(v.fallback(v.boolean(), false), false),
  text_config: v.optional(v.fallback(v.nullable(Shape), null), null),
  /** Configuration of the image encoder; absent or null if the model has none. */
  vision_config: v.optional(v.unknown()),
  /** Configuration of the audio encoder; absent or null if the model has none. */
  audio_config: v.optional(v.unknown()),
});
/** Refuses images and audio of a model whose graph is written here. */
const TEXT_PART = `Only the text part of this model is used, because its files have no graph for images or audio. ${INSTEAD}`;

/** Tells from a model's configuration, without its weights, whether it can run. */
export interface ArchitectureVerdict {
  /** Reason why the model cannot run, and what to try instead; null if the configuration shows none. */
  refusal: string | null;
  /** Kind of media that the model reads besides text; null if none. */
  reads: MediaKind | null;
  /**
   * Error message for requests with images or audio, for a model whose media are known not to work here; otherwise
   * null.
   */
  mediaRefusal: string | null;
  /** Bytes of KV cache for each token, in 32-bit floats; null if the configuration does not determine them. */
  kvBytes: number | null;
  /** Contract of an encoder model; null for a model that generates text. */
  contract: EncoderContract | null;
}

/** Holds the parsed JSON of the files that describe a model; undefined for a file that is missing. */
export interface ModelConfiguration {
  /** `config.json` */
  config?: unknown;
  /** `genai_config.json` */
  genai?: unknown;
  /** `image_processor.json`, otherwise `processor_config.json` */
  processor?: unknown;
  /** True if a decision model's own layer takes the place of the head that generates text. */
  ownHead?: boolean;
  /** True if the files have no graph, so that it is written here, of a generator for text alone. Default: false. */
  checkpoint?: boolean;
  /** The names of all files, and those that tell the contract of an encoder model. */
  files?: PublishedFiles;
}

/**
 * Judges from a model's configuration whether the model can run here, and which media it reads. A file without the
 * expected form is ignored.
 */
export function judgeArchitecture({ files, ...configuration }: ModelConfiguration): ArchitectureVerdict {
  const encoder = { reads: null, mediaRefusal: null, kvBytes: null };
  try {
    const contract = files ? findEncoderContract(files) : null;
    if (files && contract) {
      const refusal = configuration.checkpoint ? encoderRefusal(encoderConfig(files.json)) : null;
      return { ...encoder, refusal, contract };
    }
  } catch (error) {
    if (!(error instanceof RefusedContract)) throw error;
    return { ...encoder, refusal: error.message, contract: null };
  }
  return { ...judgeGenerator(configuration), contract: null };
}

function judgeGenerator(model: Omit<ModelConfiguration, 'files'>): Omit<ArchitectureVerdict, 'contract'> {
  const { config, genai, processor, ownHead, checkpoint } = model;
  const published = v.safeParse(Config, config);
  const built = v.safeParse(GenaiConfig, genai);
  const refusal =
    (published.success ? configRefusal(published.output, ownHead) : null) ??
    (built.success ? genaiRefusal(built.output) : null);
  const kvBytes =
    (built.success ? genaiKv(built.output) : null) ?? (published.success ? configKv(published.output) : null);
  const family = built.success ? genaiFamily(built.output, processor) : null;
  if (built.success && family) {
    const refused = genaiMediaRefusal(built.output, { family, processor });
    return { refusal, reads: refused ? null : MEDIA_FAMILIES[family], mediaRefusal: refused, kvBytes };
  }
  const media = published.success ? mediaOf(published.output) : null;
  if (checkpoint) {
    const text = media && media.encoded.length > 0 ? TEXT_PART : null;
    return { refusal: refusal ?? architectureRefusal(config, ownHead), reads: null, mediaRefusal: text, kvBytes };
  }
  return { refusal, reads: media && mediaRead(media), mediaRefusal: media && mediaRefusal(media), kvBytes };
}

function mediaOf(config: v.InferOutput<typeof Config>): PublishedMedia {
  const { model_type, vision_config, audio_config } = config;
  return {
    modelType: model_type,
    encoded: [...(vision_config ? ['image' as const] : []), ...(audio_config ? ['audio' as const] : [])],
    bothDirections: (config.text_config ?? config).use_bidirectional_attention === 'vision',
  };
}

function configRefusal(config: v.InferOutput<typeof Config>, ownHead = false): string | null {
  const { architectures, is_encoder_decoder, text_config } = config;
  const type = text_config?.model_type || config.model_type;
  const [architecture] = architectures;
  if (is_encoder_decoder) return 'it is an encoder with a decoder, such as T5 or Whisper; use a decoder-only model';
  if (architecture && !ownHead && !GENERATES.test(architecture)) {
    return `config.json names ${architecture}, which does not generate text; use a model for text generation`;
  }
  const known = [config.model_type, type].find((name) => Object.hasOwn(REFUSED, name));
  if (known !== undefined) return `config.json says ${known}: ${REFUSED[known]}`;
  const { layer_types, enable_moe_block } = text_config ?? config;
  if (enable_moe_block) {
    return `config.json says ${type} with experts, whose activation (GeGLU) onnxruntime has no kernels for; use a Gemma 4 without experts, such as 12B or E4B`;
  }
  const mamba = layer_types.some((layer) => /^mamba/.test(layer));
  return mamba
    ? `config.json says ${type} with Mamba layers, which are not supported; choose a model that has only attention layers`
    : null;
}

function genaiKv({ model: { decoder } }: GenaiConfig): number | null {
  const { head_size, num_hidden_layers, num_key_value_heads, layer_types } = decoder;
  return bytesOf(num_hidden_layers, layer_types, num_key_value_heads, head_size);
}

function configKv(config: v.InferOutput<typeof Config>): number | null {
  const shape = config.text_config ?? config;
  const { hidden_size, num_attention_heads, num_hidden_layers, layer_types } = shape;
  const derived = hidden_size && num_attention_heads ? hidden_size / num_attention_heads : null;
  const heads = shape.num_key_value_heads ?? num_attention_heads;
  return bytesOf(num_hidden_layers, layer_types, heads, shape.head_dim ?? derived);
}

function bytesOf(layers: number | null, types: readonly string[], heads: number | null, size: number | null) {
  if (!layers || !heads || !size) return null;
  const attention = types.length > 0 ? types.filter((type) => /^(full|sliding)?_?attention/.test(type)).length : layers;
  return 2 * attention * heads * size * FLOAT;
}
