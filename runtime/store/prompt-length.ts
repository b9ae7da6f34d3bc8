import * as v from 'valibot';
import type { Device } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { rowTokens } from '../contracts/encoder-contracts.ts';
import { CONFIG_BOUNDS, readBoundedJson } from './bounded-file.ts';
import type { LocalModel } from './hub-cache.ts';
import type { StorePaths } from './paths.ts';

/** Smallest value of `max_prompt_len`, in tokens (M-12). */
export const MIN_PROMPT_LEN = 16;
/** Largest default of `max_prompt_len`, for models on the CPU. */
const LONG_PROMPT_LEN = 32_768;
/**
 * Default of `max_prompt_len` on devices whose graphs have fixed lengths and whose memory is not known, and for a model
 * that does not state its context length.
 */
export const SHORT_PROMPT_LEN = 4096;

const Positions = v.optional(v.fallback(v.nullable(v.pipe(v.number(), v.integer(), v.minValue(1))), null));
const Rotary = v.optional(
  v.fallback(
    v.nullable(v.looseObject({ short_factor: v.optional(v.unknown()), original_max_position_embeddings: Positions })),
    null,
  ),
);
const Lengths = { max_position_embeddings: Positions, original_max_position_embeddings: Positions };
const Configuration = v.looseObject({
  ...Lengths,
  n_positions: Positions,
  rope_scaling: Rotary,
  rope_parameters: Rotary,
  text_config: v.optional(v.fallback(v.looseObject(Lengths), {})),
  model: v.optional(v.fallback(v.looseObject({ context_length: Positions }), {})),
});

/** Holds the lengths that a model's configuration states, in tokens. */
export interface StatedLengths {
  /** Context length; null if unknown. */
  context: number | null;
  /**
   * Length up to which a model with two sets of rotary tables (LongRoPE) uses the ones for short texts; null for other
   * models. The default does not exceed it, because the tables for long texts change the answers about short ones.
   */
  short: number | null;
}

/**
 * Reads the lengths from `config.json` or `genai_config.json`. Throws `engine_failed` for a file that is too large or
 * not JSON.
 */
export async function statedLengths(paths: StorePaths, model: LocalModel): Promise<StatedLengths> {
  if (model.contract) return { context: rowTokens(model.contract), short: null };
  const { data, support } = model.files;
  const backbone = data.find((path) => path.endsWith('/config.json'));
  for (const file of [backbone, support['config.json'], support['genai_config.json']]) {
    if (!file) continue;
    const lengths = lengthsOf(await readBoundedJson(paths.file(model.directory, file), CONFIG_BOUNDS));
    if (lengths.context !== null) return lengths;
  }
  return model.base ? statedLengths(paths, model.base) : { context: null, short: null };
}

/** Returns the lengths that a parsed `config.json` or `genai_config.json` states. */
export function lengthsOf(config: unknown): StatedLengths {
  const parsed = v.safeParse(Configuration, config);
  if (!parsed.success) return { context: null, short: null };
  const { max_position_embeddings, n_positions, text_config, model: genai } = parsed.output;
  const context =
    max_position_embeddings ?? text_config?.max_position_embeddings ?? genai?.context_length ?? n_positions;
  return { context: context ?? null, short: shortLength(parsed.output) };
}

function shortLength(config: v.InferOutput<typeof Configuration>): number | null {
  const rotary = [config.rope_parameters, config.rope_scaling].find((one) => one?.short_factor !== undefined);
  if (!rotary) return null;
  return rotary.original_max_position_embeddings ?? config.original_max_position_embeddings ?? SHORT_PROMPT_LEN;
}

/**
 * Returns the prompt length in tokens to compile for (M-12). Throws `invalid_value` unless a requested length is a
 * whole number from `MIN_PROMPT_LEN` to the context length.
 *
 * @param wanted requested length; undefined for the default of the device
 */
export function choosePromptLength(
  wanted: number | undefined,
  { context, short }: StatedLengths,
  device: Device = 'CPU',
): number {
  const most = context ?? SHORT_PROMPT_LEN;
  if (wanted === undefined) return Math.min(most, short ?? LONG_PROMPT_LEN, USUAL[device]);
  if (Number.isInteger(wanted) && wanted >= MIN_PROMPT_LEN && wanted <= most) return wanted;
  const limit =
    context === null
      ? `${most}, because the model does not state its context length`
      : `${most}, the model's context length`;
  throw new AssayError('invalid_value', `max_prompt_len must be a whole number from ${MIN_PROMPT_LEN} to ${limit}.`, {
    param: 'max_prompt_len',
  });
}

const USUAL: Record<Device, number> = { CPU: LONG_PROMPT_LEN, GPU: SHORT_PROMPT_LEN, NPU: SHORT_PROMPT_LEN };
