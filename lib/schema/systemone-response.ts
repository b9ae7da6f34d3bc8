import * as v from 'valibot';
import { ERROR_TYPES } from '../error-status.ts';
import { additions, confidence, extracted, setConfidence, windowed } from './decisions-response.ts';
import { ErrorDetails } from './error-body.ts';
import { count, described, exactOptional, probability } from './values.ts';

const probabilities = v.record(v.string(), probability);

export const x_abstained = exactOptional(
  v.boolean(),
  'true if the model answers that the state does not tell, or if the most likely label is less likely than abstain_below. Do not rely on the answer then.',
);
export const NoulAnswer = v.object({
  type: v.literal('noul'),
  noul: described(probability, 'Probability that the answer is yes.'),
  x_abstained,
  ...additions,
});
export const LabelChoiceAnswer = v.object({
  type: v.literal('choice'),
  choice: v.string(),
  probabilities: described(probabilities, 'Probability of each label.'),
  confidence,
  x_abstained,
  ...additions,
});
export const LevelAnswer = v.object({
  type: v.literal('score'),
  score: described(v.number(), 'The expected level: the mean of the level indexes, weighted by their probabilities.'),
  legend: described(v.record(v.string(), v.unknown()), 'The levels of the question by index.'),
  probabilities: described(probabilities, 'Probability of each level, by index.'),
  confidence,
  x_abstained,
  ...additions,
});
export const LabelMultiAnswer = v.object({
  type: v.literal('multi'),
  selected: described(v.array(v.string()), 'The labels that apply, in the order sent.'),
  probabilities: described(probabilities, 'Probability that each label applies.'),
  threshold: probability,
  set_confidence: setConfidence,
  ...windowed,
});
export const NamedExtractAnswer = v.object(extracted);

export const SystemOneAnswer = v.variant('type', [
  NoulAnswer,
  LabelChoiceAnswer,
  LevelAnswer,
  LabelMultiAnswer,
  NamedExtractAnswer,
]);

export const SystemOneResponse = v.object({
  model: described(v.string(), 'Id of the model that answered.'),
  answers: described(v.record(v.string(), SystemOneAnswer), 'The answers by the names of their questions.'),
  usage: v.object({ input_tokens: count, output_tokens: count }),
});

/** One invalid value of a request, in the format of FastAPI's error bodies. */
export const InvalidValue = v.object({
  loc: described(
    v.array(v.union([v.string(), v.number()])),
    'Path of the value: body, and its names and indices; or header, and its name.',
  ),
  msg: v.string(),
  type: v.string(),
});

/**
 * The body of error responses of `/v1/systemone`: that of TypeSafe's servers (`detail`), which for an invalid body
 * (422) is FastAPI's, and that of this server (`error`).
 */
export const SystemOneErrorBody = v.object({
  detail: v.union([v.object({ error_type: v.picklist(ERROR_TYPES), message: v.string() }), v.array(InvalidValue)]),
  error: ErrorDetails,
});
