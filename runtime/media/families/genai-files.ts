import { GEMMA_STEP, type GenaiConfig, processorStep } from '../../store/genai-config.ts';

/** Filters of a step `Resize`, by the numbers that transformers gives them. */
const RESAMPLE: Readonly<Record<string, number>> = { LANCZOS: 1, LINEAR: 2, CUBIC: 3 };

/**
 * Returns what `genai_config.json` and the image processor of onnxruntime-extensions say about images, as the parsed
 * `config.json` and `preprocessor_config.json`; null if the processor has none of the known steps. A value that the
 * files do not state is absent.
 */
export function genaiFiles(
  { model }: GenaiConfig,
  processor: unknown,
): { config: object; preprocessor: object } | null {
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
