import * as v from 'valibot';
import { INSTEAD, isMediaFamily, type MediaFamilyName } from './media-models.ts';

/** Name of onnxruntime-genai's configuration file. Each folder with a model in its layout has one. */
export const GENAI_CONFIG = 'genai_config.json';

/** Names the sections of `genai_config.json` that describe a graph. */
export type GenaiGraph = 'decoder' | 'embedding' | 'vision' | 'speech';

/**
 * Paths at which each graph of a model in several graphs may be, relative to the folder of `genai_config.json`: those
 * of the exporter mobius first, then those of Olive's recipes.
 */
export const GENAI_GRAPHS: Readonly<Record<GenaiGraph, readonly string[]>> = {
  decoder: ['decoder/model.onnx', 'text.onnx', 'model.onnx'],
  embedding: ['embedding/model.onnx', 'embedding.onnx'],
  vision: ['vision_encoder/model.onnx', 'vision.onnx'],
  speech: ['audio_encoder/model.onnx', 'speech.onnx'],
};

/** Names of the files that may say how images are prepared (`config_filename` in the section `vision`), best first. */
export const GENAI_PROCESSORS = ['image_processor.json', 'processor_config.json'] as const;

const Count = v.optional(v.fallback(v.nullable(v.pipe(v.number(), v.integer(), v.minValue(1))), null), null);
const Text = v.optional(v.fallback(v.nullable(v.string()), null), null);
const Names = v.optional(v.fallback(v.record(v.string(), v.unknown()), {}), {});
const Section = v.looseObject({ filename: Text, config_filename: Text, inputs: Names, outputs: Names });
const Encoder = v.optional(
  v.fallback(v.nullable(v.looseObject({ ...Section.entries, patch_size: Count })), null),
  null,
);

export const GenaiConfig = v.looseObject({
  model: v.looseObject({
    type: Text,
    image_token_id: v.optional(v.unknown()),
    pad_token_id: v.optional(v.unknown()),
    /** Graph that computes the features of images; null if the model has none. */
    vision: Encoder,
    /** Graph that computes the features of audio; null if the model has none. */
    speech: Encoder,
    /** Graph that computes the embeddings of a prompt; null if the decoder reads token ids. */
    embedding: v.optional(v.fallback(v.nullable(Section), null), null),
    decoder: v.looseObject({
      ...Section.entries,
      head_size: Count,
      num_hidden_layers: Count,
      num_key_value_heads: Count,
      layer_types: v.optional(v.fallback(v.array(v.string()), []), []),
    }),
  }),
});
export type GenaiConfig = v.InferOutput<typeof GenaiConfig>;

/** Size in pixels of the patches of Qwen2-VL and Qwen2.5-VL; those of later models are larger. */
const QWEN_2_PATCH = 14;

/**
 * Returns the media family of a model that has a vision graph; null if the model has none, or its type is not
 * supported. Exporters give the type `qwen2_5_vl` also to Qwen2-VL, which is prepared in the same way, and to Qwen3-VL,
 * which has larger patches.
 *
 * @param processor parsed file that says how images are prepared (`GENAI_PROCESSORS`); undefined if there is none
 */
export function genaiFamily({ model }: GenaiConfig, processor: unknown): MediaFamilyName | null {
  if (!model.vision || model.type === null || !READ.includes(model.type)) return null;
  if (model.type !== 'qwen2_5_vl') return isMediaFamily(model.type) ? model.type : null;
  const patch = patchSize(processor) ?? model.vision.patch_size ?? QWEN_2_PATCH;
  return patch === QWEN_2_PATCH ? 'qwen2_5_vl' : 'qwen3_vl';
}

/** Values of `model.type` of the models in several graphs that can be used. */
const READ: readonly string[] = ['qwen2_5_vl', 'qwen3_vl', 'gemma4'];

/**
 * Returns the error message for images, for a model whose files lack something that its images need; null if nothing is
 * known to be missing.
 *
 * @param processor as in `genaiFamily`
 */
export function genaiMediaRefusal(
  { model }: GenaiConfig,
  { family, processor }: { family: MediaFamilyName; processor: unknown },
): string | null {
  const refused = (why: string) => `Images are refused with these files of the model: ${why}. ${INSTEAD}`;
  const given = Object.values(model.vision?.outputs ?? {});
  if (family === 'qwen3_vl' && !given.includes('deepstack_features_0'))
    return refused(
      'their encoder gives no deepstack features, without which Qwen3-VL sees little, and images of Qwen3.5 were not compared with PyTorch',
    );
  if (family === 'gemma4' && Object.keys(processorStep(processor, GEMMA_STEP)).length === 0)
    return refused(`none of them says how images are prepared (${GENAI_PROCESSORS[0]} with ${GEMMA_STEP})`);
  return null;
}

/**
 * Type of the step in `image_processor.json` that prepares images for the encoder of Gemma 4 E2B and E4B. The 12B model
 * has another type, or no such step.
 */
export const GEMMA_STEP = 'Gemma4ImageTransform';

/** Returns why a model cannot run here and what to use instead; null if its `genai_config.json` shows no reason. */
export function genaiRefusal({ model }: GenaiConfig): string | null {
  const { decoder, embedding, vision, speech, type } = model;
  const given = Object.keys(decoder.inputs);
  const use = 'use a copy in the layout of transformers.js (onnx/decoder_model_merged.onnx), or a text model';
  if (given.includes('input_ids') && given.includes('inputs_embeds')) {
    return `genai_config.json has a decoder that reads tokens and their embeddings, as of a Gemma 4 whose image tokens attend to each other in both directions, which is not supported; ${use}`;
  }
  if (given.length === 0 || given.includes('input_ids')) return null;
  if (type === null || !READ.includes(type) || !vision) {
    const others = Object.entries({ vision, speech }).flatMap(([name, section]) => (section ? [name] : []));
    const named = others.length > 0 ? ` (${others.join(', ')})` : '';
    return `genai_config.json has graphs beside its decoder${named}, and the decoder reads their embeddings, not tokens. In this layout, that is supported for ${READ.join(', ')}, not for ${type ?? 'an unnamed type'}, whose results could not be compared with those of PyTorch; ${use}`;
  }
  const sections = { decoder, embedding, vision };
  for (const [name, section] of Object.entries(sections)) {
    const known = GENAI_GRAPHS[name as keyof typeof sections];
    if (!section?.filename || !known.includes(section.filename)) {
      return `genai_config.json names ${section?.filename ?? 'no file'} as its graph "${name}", which is looked for at ${known.join(' or ')} only; ${use}`;
    }
  }
  const processor = vision.config_filename;
  return processor === null || GENAI_PROCESSORS.some((name) => name === processor)
    ? null
    : `genai_config.json names ${processor} as the file that says how images are prepared, which must be ${GENAI_PROCESSORS.join(' or ')}; ${use}`;
}

/**
 * Returns the attributes of the first step with this type in an image processor of onnxruntime-extensions (parsed
 * JSON); empty if it has no such step.
 */
export function processorStep(processor: unknown, type: string): Readonly<Record<string, unknown>> {
  const parsed = v.safeParse(Processor, processor);
  const steps = parsed.success ? parsed.output.processor.transforms : [];
  return steps.find(({ operation }) => operation.type === type)?.operation.attrs ?? {};
}

const Processor = v.looseObject({
  processor: v.looseObject({
    transforms: v.array(
      v.looseObject({
        operation: v.looseObject({ type: v.string(), attrs: v.optional(v.record(v.string(), v.unknown())) }),
      }),
    ),
  }),
});

function patchSize(processor: unknown): number | undefined {
  const { patch_size: size } = { ...processorStep(processor, 'Resize'), ...processorStep(processor, 'PatchImage') };
  return typeof size === 'number' ? size : undefined;
}

/** Returns the folder in a path that ends in `genai_config.json`, with a slash at its end; empty for the top folder. */
export function folderOf(config: string): string {
  return config.slice(0, -GENAI_CONFIG.length);
}
