import * as v from 'valibot';
import { CalibratedKinds, Thresholds } from '../calibration/calibration.ts';
import { MODEL_ID_PATTERN } from '../model-id.ts';
import { count, described, exactOptional } from './values.ts';

/**
 * A model id in requests and responses. The schema accepts any text, and only the contract contains the pattern;
 * `parseModelId` checks it.
 */
export const ModelIdText = v.pipe(v.string(), v.metadata({ pattern: MODEL_ID_PATTERN, examples: ['assay/starter'] }));

/** Values of `status` in the model list (docs/model-api.md, M-5). */
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

/** The calibration of a model's probabilities: its source, date and measured errors. */
export const ModelCalibration = v.object({
  from: described(
    v.picklist(['own', 'bundled']),
    'own: fitted on this machine with assay calibrate; kinds without labels keep what ships with the model. bundled: shipped with the model.',
  ),
  fitted: described(v.string(), 'Date on which the calibration was fitted: YYYY-MM-DD, UTC.'),
  kinds: CalibratedKinds,
  thresholds: exactOptional(Thresholds, 'Thresholds of confidence for max_error; absent if void or never certified.'),
});
export type ModelCalibration = v.InferOutput<typeof ModelCalibration>;

/** Describes what a loaded model can do (docs/model-api.md, M-29). */
export const ModelCapabilities = v.object({
  decide: described(
    v.picklist(['any', 'options']),
    'any: also answers in its own words. options: questions with options only.',
  ),
  extract: described(
    v.union([v.picklist(['schema', 'spans']), v.literal(false)]),
    'schema: any answer schema. spans: texts and lists of texts as they are in the input, choices, booleans and lists of flat objects. false: no extraction.',
  ),
  chat: v.boolean(),
  abstains: described(v.boolean(), 'Whether the model itself answers that the input does not tell.'),
  max_tokens: described(v.number(), 'Most tokens that the model reads at once.'),
  max_options: described(v.number(), 'Most options of one question.'),
  languages: exactOptional(v.array(v.string()), 'Languages that its author names; absent if unknown or many.'),
});
export type ModelCapabilities = v.InferOutput<typeof ModelCapabilities>;

/** Names how a model is asked and read: as its author's code does, or by Assay's own contract. */
export const ModelContract = v.object({
  name: described(v.string(), "Family of the model, such as decider; assay: Assay's own questions."),
  version: described(
    v.nullable(v.string()),
    "Version of the contract, or in the model's files; null if they state none.",
  ),
  temperature: described(v.string(), 'Where the temperature of the probabilities comes from.'),
});
export type ModelContract = v.InferOutput<typeof ModelContract>;

/** One model of `GET /v1/models`, `GET /models` and `GET /v1/models/{id}` (docs/model-api.md, M-5 and M-23). */
export const Model = v.object({
  id: ModelIdText,
  object: v.literal('model'),
  created: described(count, 'When the model was downloaded to this machine, in Unix seconds; 0 if unknown.'),
  owned_by: described(v.string(), 'The namespace of the id, such as onnx-community.'),
  status: ModelStatus,
  fingerprint: exactOptional(v.string(), "SHA-256 hash over the model's files, in hex. Only the active model has one."),
  policy_fingerprint: exactOptional(
    v.string(),
    "SHA-256 hash over fingerprint, the weights' number format and the wording of questions (for an author's contract, its name and the version of Assay): what thresholds are valid for.",
  ),
  calibration: v.exactOptional(ModelCalibration),
  capabilities: v.exactOptional(ModelCapabilities),
  contract: v.exactOptional(ModelContract),
});
export type Model = v.InferOutput<typeof Model>;
/** A name by which a request may call a model, as TypeSafe's clients read the list. */
export const NamedModel = v.object({
  name: described(v.string(), 'A model id, or another name of the loaded model.'),
  description: v.string(),
  release_date: described(v.string(), 'When the model was downloaded to this machine: YYYY-MM-DD, UTC.'),
});
export type NamedModel = v.InferOutput<typeof NamedModel>;
export const ModelList = v.object({
  object: v.literal('list'),
  data: v.array(Model),
  models: exactOptional(
    v.array(NamedModel),
    "The same models and the loaded one's other names, for TypeSafe's clients. Older servers omit them.",
  ),
});
export type ModelList = v.InferOutput<typeof ModelList>;
