import * as v from 'valibot';
import { rule } from '../validation/rules.ts';
import { nullish, probability, whole } from './values.ts';

/*
 * Fields that requests of Chat Completions and Responses share. Null counts as not sent (docs/model-api.md, M-14).
 */

export const temperature = v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(2)));
export const topP = v.nullish(probability);
export const topLogprobs = v.nullish(whole(0, 20));
/** The value with which clients of LM Studio and llama.cpp ask for no limit. */
export const NO_LIMIT = -1;
const MOST_TOKENS = 1_048_576;
export const tokenCount = v.nullish(
  v.pipe(
    v.number(),
    v.integer(),
    rule((count) =>
      count === NO_LIMIT || count >= 1
        ? null
        : { code: 'invalid_value', message: 'must be at least 1, or -1 (no limit)' },
    ),
    v.maxValue(MOST_TOKENS),
    v.metadata({ minimum: NO_LIMIT }),
  ),
);

/** Returns the limit that a request sets: -1 means as many as the context allows. */
export const limitOf = (count: number | null | undefined) => (count === NO_LIMIT ? MOST_TOKENS : count);

/** The field `cache_salt` of all requests, as vLLM has it. */
export const cacheSalt = nullish(
  v.pipe(v.string(), v.minLength(1), v.maxCodePoints(256)),
  'Reuse cached prompts only between requests with this salt. They are never reused between keys, unless both keys share their cache.',
);
