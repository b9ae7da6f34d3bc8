import * as v from 'valibot';
import { MODEL_ID_PATTERN } from '../model-id.ts';

/** A model id on the wire; `parseModelId` checks it. */
export const ModelIdText = v.pipe(v.string(), v.metadata({ pattern: MODEL_ID_PATTERN, examples: ['assay/starter'] }));

/** `status` in the model list (docs/interface.md, M-5). */
export const MODEL_STATUSES = [
  'active',
  'loading',
  'unloading',
  'compiling',
  'downloading',
  'compiled',
  'downloaded',
  'available',
  'error',
] as const;
export const ModelStatus = v.picklist(MODEL_STATUSES);
export type ModelStatus = v.InferOutput<typeof ModelStatus>;

/** One entry of `GET /v1/models` and `GET /models` (docs/interface.md, M-5). */
export const Model = v.object({ id: ModelIdText, object: v.literal('model'), status: ModelStatus });
export const ModelList = v.object({ object: v.literal('list'), data: v.array(Model) });
export type ModelList = v.InferOutput<typeof ModelList>;
