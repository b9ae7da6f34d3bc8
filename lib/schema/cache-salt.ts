import * as v from 'valibot';

/** The field `cache_salt` of all requests, as vLLM has it. */
export const cacheSalt = v.nullish(
  v.pipe(
    v.string(),
    v.minLength(1),
    v.maxCodePoints(256),
    v.description(
      'Reuse cached prompts only between requests with this salt. They are never reused between keys, unless both keys share their cache.',
    ),
  ),
);
