import * as v from 'valibot';
import { AssayError } from '../../lib/errors.ts';
import { CONFIG_BOUNDS, readBoundedJson } from './bounded-file.ts';
import type { LocalModel } from './hub-cache.ts';
import type { StorePaths } from './paths.ts';

/** Smallest value of `max_prompt_len`, in tokens (M-12). */
export const MIN_PROMPT_LEN = 16;
export const DEFAULT_PROMPT_LEN = 4096;

const Positions = v.optional(v.fallback(v.nullable(v.pipe(v.number(), v.integer(), v.minValue(1))), null));
const Configuration = v.looseObject({
  max_position_embeddings: Positions,
  n_positions: Positions,
  text_config: v.optional(v.fallback(v.looseObject({ max_position_embeddings: Positions }), {})),
  model: v.optional(v.fallback(v.looseObject({ context_length: Positions }), {})),
});

/**
 * Reads the model's context length in tokens from `config.json` or `genai_config.json`. Returns null if neither states
 * it. Throws `engine_failed` for a file that is too large or not JSON.
 */
export async function contextLength(paths: StorePaths, model: LocalModel): Promise<number | null> {
  for (const name of ['config.json', 'genai_config.json']) {
    const file = model.files.support[name];
    if (!file) continue;
    const parsed = v.safeParse(Configuration, await readBoundedJson(paths.file(model.directory, file), CONFIG_BOUNDS));
    if (!parsed.success) continue;
    const { max_position_embeddings, n_positions, text_config, model: genai } = parsed.output;
    const length =
      max_position_embeddings ?? text_config?.max_position_embeddings ?? genai?.context_length ?? n_positions;
    if (length) return length;
  }
  return null;
}

/**
 * Returns the prompt length in tokens to compile for (M-12). Throws `invalid_value` unless a requested length is a
 * whole number from `MIN_PROMPT_LEN` to `context`, or to `DEFAULT_PROMPT_LEN` if that is null.
 *
 * @param wanted requested length; undefined for the default
 * @param context context length of the model; null if unknown
 */
export function choosePromptLength(wanted: number | undefined, context: number | null): number {
  const most = context ?? DEFAULT_PROMPT_LEN;
  if (wanted === undefined) return Math.min(most, DEFAULT_PROMPT_LEN);
  if (Number.isInteger(wanted) && wanted >= MIN_PROMPT_LEN && wanted <= most) return wanted;
  const limit =
    context === null
      ? `${most}, because the model does not state its context length`
      : `${most}, the model's context length`;
  throw new AssayError('invalid_value', `max_prompt_len must be a whole number from ${MIN_PROMPT_LEN} to ${limit}.`, {
    param: 'max_prompt_len',
  });
}
