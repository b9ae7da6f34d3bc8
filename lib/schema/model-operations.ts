import * as v from 'valibot';
import { object, strictObject } from '../validation/objects.ts';
import { Device } from './metrics.ts';
import { ModelIdText } from './model-list.ts';
import { precisionFields } from './precision.ts';
import { count, described, optional, whole } from './values.ts';

/** Longest prompt in tokens. The host also checks it against the model's context length (docs/model-api.md, M-12). */
const MaxPromptLen = described(
  whole(16, 1_048_576),
  'Longest prompt, in tokens, that the model is compiled for. Another value compiles again.',
);
const success = v.literal('success');
const reportFields = {
  ...precisionFields,
  precision_warning: optional(
    v.string(),
    'Why answers may be wrong in the requested number format of the weights, and what to do.',
  ),
};

// Unlike a chat, these requests allow no unknown fields: a misspelt `compiled_only` must not delete the weights.

/** Request of `POST /load` and `POST /v1/models/load`. */
export const LoadRequest = strictObject({
  model: ModelIdText,
  max_prompt_len: v.optional(MaxPromptLen),
  keep_others: optional(
    v.boolean(),
    'Whether the loaded models stay in memory beside this one, which is refused if it does not fit. Default: false, but true on a server that was started for several models.',
  ),
  evict: optional(
    v.boolean(),
    'Whether the models that were used least recently are unloaded if this one does not fit. Default: what the server was started with.',
  ),
});
export type LoadRequest = v.InferOutput<typeof LoadRequest>;

/** Request of `POST /unload`, whose body may be absent. */
export const UnloadRequest = object({
  model: optional(ModelIdText, 'The model to unload. Default: the active one.'),
});

/** Request of `POST /download` and `POST /v1/models/download`. */
export const DownloadRequest = strictObject({
  model: ModelIdText,
  max_prompt_len: v.optional(MaxPromptLen),
  allow_download: v.optional(
    described(v.boolean(), 'Whether missing files may be downloaded. If false, only files on disk are compiled.'),
    true,
  ),
});
export type DownloadRequest = v.InferOutput<typeof DownloadRequest>;

/** Request of `POST /delete` and `POST /v1/models/delete`. */
export const DeleteRequest = strictObject({
  model: ModelIdText,
  compiled_only: v.optional(
    described(v.boolean(), 'Whether to keep the downloaded weights and delete only the compiled files.'),
    false,
  ),
});
export type DeleteRequest = v.InferOutput<typeof DeleteRequest>;

export const LoadResponse = object({
  status: success,
  model: ModelIdText,
  state: v.literal('loaded'),
  device: Device,
  load_ms: described(
    v.pipe(v.number(), v.minValue(0)),
    'Milliseconds that the load took; 0 if the model was loaded already.',
  ),
  compiled: described(v.boolean(), 'Whether this call compiled the model; false if it was compiled already.'),
  max_prompt_len: MaxPromptLen,
  ...reportFields,
});
export type LoadResponse = v.InferOutput<typeof LoadResponse>;

export const UnloadResponse = object({
  status: success,
  /** The unloaded model; null if there was none. */
  model: v.nullable(ModelIdText),
  state: v.literal('unloaded'),
});
export type UnloadResponse = v.InferOutput<typeof UnloadResponse>;

export const DownloadResponse = object({
  status: success,
  model: ModelIdText,
  state: v.literal('compiled'),
  /** Number of bytes that this call downloaded; 0 if all files were present. */
  bytes: count,
  compiled: described(v.boolean(), 'Whether this call compiled the model; false if it was compiled already.'),
  max_prompt_len: MaxPromptLen,
  ...reportFields,
});
export type DownloadResponse = v.InferOutput<typeof DownloadResponse>;

/** One progress event of a streamed download. The last event of the stream is a `DownloadResponse` or an error body. */
export const DownloadProgress = object({
  status: v.picklist(['downloading', 'verifying', 'compiling']),
  model: ModelIdText,
  /** Number of bytes done so far in this stage. */
  bytes: count,
  /** Total number of bytes of this stage; null if unknown. */
  total: v.nullable(count),
  /** Name of the file in progress. */
  file: v.optional(v.string()),
  /** Name of the compile step in progress. */
  step: v.optional(v.string()),
});
export type DownloadProgress = v.InferOutput<typeof DownloadProgress>;

/** One event of a streamed download: progress or, at the end, the response that a call without a stream gets. */
export const DownloadEvent = v.union([DownloadProgress, DownloadResponse]);

export const RemovedFiles = object({ kind: v.picklist(['compiled', 'weights', 'locks']), bytes: count });
export const DeleteResponse = object({
  status: success,
  model: ModelIdText,
  /** `downloaded`: the weights are still present. `deleted`: they are not. */
  state: v.picklist(['downloaded', 'deleted']),
  removed: v.array(RemovedFiles),
});
export type DeleteResponse = v.InferOutput<typeof DeleteResponse>;
