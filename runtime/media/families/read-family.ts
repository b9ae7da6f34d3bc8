import { join } from 'node:path';
import * as v from 'valibot';
import { AssayError } from '../../../lib/errors.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../../store/bounded-file.ts';
import { GEMMA_STEP, GenaiConfig, genaiFamily, processorStep } from '../../store/genai-config.ts';
import { isMediaFamily, type MediaFamilyName } from '../../store/media-models.ts';
import { UltravoxConfig, ultravox, VoxtralConfig, voxtral } from './audio-families.ts';
import type { MediaFamily } from './family.ts';
import { Gemma4Config, gemma4 } from './gemma4.ts';
import { Idefics3Config, idefics3 } from './idefics3.ts';
import { QwenVlConfig, qwenVl } from './qwen-vl.ts';

type Reader = (files: unknown, maxPromptLen: number) => MediaFamily;

const readQwenVl =
  ({ deepstack }: { deepstack: boolean }): Reader =>
  (files, maxPromptLen) =>
    qwenVl(v.parse(QwenVlConfig, files), { maxPromptLen, deepstack });

/** Functions that check a model's configuration files and create its family, by `model_type` in `config.json`. */
const FAMILIES: Readonly<Record<MediaFamilyName, Reader>> = {
  gemma4: (files) => gemma4(v.parse(Gemma4Config, files)),
  idefics3: (files) => idefics3(v.parse(Idefics3Config, files)),
  smolvlm: (files) => idefics3(v.parse(Idefics3Config, files)),
  qwen2_vl: readQwenVl({ deepstack: false }),
  qwen2_5_vl: readQwenVl({ deepstack: false }),
  qwen3_vl: readQwenVl({ deepstack: true }),
  ultravox: (files) => ultravox(v.parse(UltravoxConfig, files)),
  voxtral: (files) => voxtral(v.parse(VoxtralConfig, files)),
};

/**
 * Returns the family by which the model in the folder `dir` reads images or audio; null if its family is unknown, and
 * the model thus reads only text.
 *
 * @param maxPromptLen maximum tokens of a prompt
 * @throws AssayError `engine_failed` for a known family whose configuration is damaged or incomplete, and for a
 *   configuration file that is too large or not JSON
 */
export async function readMediaFamily(dir: string, maxPromptLen: number): Promise<MediaFamily | null> {
  const read = (name: string) => readBoundedJson(join(dir, name), CONFIG_BOUNDS);
  const [config, preprocessor, processor, genai, steps] = await Promise.all([
    read('config.json'),
    read('preprocessor_config.json'),
    read('processor_config.json'),
    read('genai_config.json'),
    read('image_processor.json'),
  ]);
  const built = v.safeParse(GenaiConfig, genai);
  const type = (built.success ? genaiFamily(built.output, steps ?? processor) : null) ?? modelType(config);
  if (!isMediaFamily(type)) return null;
  const family = FAMILIES[type];
  const files = built.success ? genaiFiles(built.output, steps ?? processor) : null;
  try {
    return family(
      files ?? { config, preprocessor: preprocessor ?? imageProcessor(processor), processor },
      maxPromptLen,
    );
  } catch (cause) {
    const named = files
      ? 'genai_config.json, image_processor.json or processor_config.json'
      : 'config.json, preprocessor_config.json or processor_config.json';
    const message = `The model's ${named} does not say how ${type} reads images or audio. Download the model again.`;
    throw new AssayError('engine_failed', message, { cause });
  }
}

function modelType(config: unknown): string {
  const named = v.safeParse(v.looseObject({ model_type: v.string() }), config);
  return named.success ? named.output.model_type : '';
}

/**
 * Returns the image processor's part of `processor_config.json`, where transformers 5 writes what was
 * `preprocessor_config.json` before; undefined if it has none.
 */
function imageProcessor(processor: unknown): unknown {
  const read = v.safeParse(v.looseObject({ image_processor: v.unknown() }), processor);
  return read.success ? read.output.image_processor : undefined;
}

/** Filters of a step `Resize`, by the numbers that transformers gives them. */
const RESAMPLE: Readonly<Record<string, number>> = { LANCZOS: 1, LINEAR: 2, CUBIC: 3 };

/**
 * Returns what `genai_config.json` and the image processor of onnxruntime-extensions say about images, as the parsed
 * `config.json` and `preprocessor_config.json`; null if the processor has none of the known steps. A value that the
 * files do not state is absent.
 */
function genaiFiles({ model }: GenaiConfig, processor: unknown): { config: object; preprocessor: object } | null {
  const types = ['Resize', 'Rescale', 'Normalize', 'PatchImage', GEMMA_STEP];
  const steps = types.map((type) => processorStep(processor, type));
  const [resize = {}, rescale = {}, normalize = {}, patches = {}, gemma = {}] = steps;
  if (steps.every((attributes) => Object.keys(attributes).length === 0)) return null;
  const { interpolation = 'CUBIC' } = resize;
  const stated = {
    // mobius leaves out the step that cuts patches.
    patch_size: patches.patch_size ?? resize.patch_size ?? gemma.patch_size,
    temporal_patch_size: patches.temporal_patch_size,
    merge_size: patches.merge_size ?? resize.merge_size,
    min_pixels: resize.min_pixels,
    max_pixels: resize.max_pixels,
    resample: typeof interpolation === 'string' ? (RESAMPLE[interpolation] ?? interpolation) : interpolation,
    pooling_kernel_size: gemma.pooling_kernel_size,
    max_soft_tokens: gemma.max_soft_tokens,
    rescale_factor: rescale.rescale_factor,
    image_mean: normalize.mean,
    image_std: normalize.std,
  };
  return {
    config: { image_token_id: model.image_token_id, text_config: { pad_token_id: model.pad_token_id } },
    preprocessor: Object.fromEntries(Object.entries(stated).filter(([, value]) => value !== undefined)),
  };
}
