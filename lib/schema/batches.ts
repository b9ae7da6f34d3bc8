import * as v from 'valibot';
import { object, record } from '../validation/objects.ts';
import { rule } from '../validation/rules.ts';
import { count, described, nonEmpty, whole } from './values.ts';

/* Files and batches as OpenAI's client sends and reads them (npm `openai` 7.55.0, `resources/files` and `batches`). */

/** Paths that the lines of a batch may ask. */
const BATCH_ENDPOINTS = [
  '/v1/decisions',
  '/v1/systemone',
  '/v1/extractions',
  '/v1/tasks',
  '/v1/chat/completions',
  '/v1/responses',
] as const;

const time = v.pipe(v.number(), v.integer());
const seconds = whole(3600, 2_592_000);
export const ExpiresAfter = object({ anchor: v.literal('created_at'), seconds });

export const FileObject = v.object({
  id: v.string(),
  object: v.literal('file'),
  bytes: v.pipe(v.number(), v.integer()),
  created_at: time,
  expires_at: v.exactOptional(time),
  filename: v.string(),
  purpose: v.picklist(['batch', 'batch_output']),
  status: described(v.literal('processed'), 'Deprecated by OpenAI.'),
});
export type FileObject = v.InferOutput<typeof FileObject>;

const page = {
  object: v.literal('list'),
  first_id: v.nullable(v.string()),
  last_id: v.nullable(v.string()),
  has_more: v.boolean(),
};
export const FileList = v.object({ ...page, data: v.array(FileObject) });
export const FileDeleted = v.object({ id: v.string(), object: v.literal('file'), deleted: v.literal(true) });

export const CreateBatchRequest = object({
  input_file_id: nonEmpty,
  endpoint: v.picklist(BATCH_ENDPOINTS),
  completion_window: v.pipe(
    v.string(),
    rule((value) => (value === '24h' ? null : { code: 'invalid_value', message: 'must be 24h' })),
  ),
  metadata: v.nullish(
    v.pipe(
      record(v.pipe(v.string(), v.maxLength(64)), v.pipe(v.string(), v.maxLength(512))),
      rule<Record<string, string>>((pairs) =>
        Object.keys(pairs).length > 16 ? { code: 'invalid_value', message: 'must have at most 16 pairs' } : null,
      ),
    ),
  ),
  output_expires_after: v.nullish(ExpiresAfter),
});
export type CreateBatchRequest = v.InferOutput<typeof CreateBatchRequest>;

const BATCH_STATES = [
  'validating',
  'failed',
  'in_progress',
  'finalizing',
  'completed',
  'expired',
  'cancelling',
  'cancelled',
] as const;
export type BatchState = (typeof BATCH_STATES)[number];

export const BatchError = v.object({
  code: v.string(),
  line: v.nullable(v.pipe(v.number(), v.integer())),
  message: v.string(),
  param: v.nullable(v.string()),
});
export type BatchError = v.InferOutput<typeof BatchError>;

const when = v.exactOptional(time);
export const Batch = v.object({
  id: v.string(),
  object: v.literal('batch'),
  endpoint: v.picklist(BATCH_ENDPOINTS),
  model: v.exactOptional(v.string()),
  errors: v.exactOptional(v.object({ object: v.literal('list'), data: v.array(BatchError) })),
  input_file_id: v.string(),
  completion_window: v.string(),
  status: v.picklist(BATCH_STATES),
  output_file_id: v.exactOptional(v.string()),
  error_file_id: v.exactOptional(v.string()),
  created_at: time,
  in_progress_at: when,
  expires_at: when,
  finalizing_at: when,
  completed_at: when,
  failed_at: when,
  expired_at: when,
  cancelling_at: when,
  cancelled_at: when,
  request_counts: v.object({ total: count, completed: count, failed: count }),
  usage: v.exactOptional(
    v.object({
      input_tokens: count,
      input_tokens_details: v.object({ cached_tokens: count }),
      output_tokens: count,
      output_tokens_details: v.object({ reasoning_tokens: count }),
      total_tokens: count,
    }),
  ),
  metadata: v.nullable(v.record(v.string(), v.string())),
});
export type Batch = v.InferOutput<typeof Batch>;
export const BatchList = v.object({ ...page, data: v.array(Batch) });
