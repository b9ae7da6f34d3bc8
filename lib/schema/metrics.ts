import * as v from 'valibot';
import { count } from './values.ts';

/** Kinds of device that can run a model. */
export const DEVICES = ['NPU', 'GPU', 'CPU'] as const;
export const Device = v.picklist(DEVICES);
export type Device = v.InferOutput<typeof Device>;

const Measure = v.nullable(v.pipe(v.number(), v.minValue(0)));
const Count = v.nullable(count);

/**
 * Metrics of a chat completion (docs/model-api.md, M-16). A name that ends in `_ms` or `_per_second` states its unit;
 * null means unknown.
 */
export const Metrics = v.object({
  /** Milliseconds from the request's arrival until the engine began it: its checks and its wait in the queue. */
  queue_ms: Measure,
  /** Milliseconds of prefill, for the part of the prompt that was not in the prefix cache. */
  prompt_ms: Measure,
  /** Milliseconds from the request's arrival to its first token. */
  time_to_first_token_ms: Measure,
  /** Milliseconds from the first token to the last. */
  generation_ms: Measure,
  total_ms: Measure,
  prompt_tokens: Count,
  /** Number of prompt tokens that were in the prefix cache. */
  cached_tokens: Count,
  completion_tokens: Count,
  prompt_tokens_per_second: Measure,
  tokens_per_second: Measure,
  device: v.nullable(Device),
});
export type Metrics = v.InferOutput<typeof Metrics>;
