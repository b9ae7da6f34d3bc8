import * as v from 'valibot';

/*
 * Fields that requests of Chat Completions and Responses share. Null counts as not sent (docs/interface.md, M-14).
 */

export const temperature = v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(2)));
export const topP = v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(1)));
export const topLogprobs = v.nullish(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(20)));
export const tokenCount = v.nullish(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_048_576)));
