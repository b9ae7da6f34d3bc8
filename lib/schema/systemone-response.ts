import * as v from 'valibot';
import { ERROR_TYPES } from '../error-status.ts';
import { additions, confidence, extracted, probability, setConfidence, windowed } from './decisions-response.ts';
import { ErrorDetails } from './error-body.ts';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const probabilities = v.record(v.string(), probability);

export const x_abstained = v.exactOptional(
  v.pipe(
    v.boolean(),
    v.description(
      'true if the model answers that the state does not tell, or if the most likely label is less likely than abstain_below. Do not rely on the answer then.',
    ),
  ),
);
export const NoulAnswer = v.object({
  type: v.literal('noul'),
  noul: v.pipe(probability, v.description('Probability that the answer is yes.')),
  x_abstained,
  ...additions,
});
export const LabelChoiceAnswer = v.object({
  type: v.literal('choice'),
  choice: v.string(),
  probabilities: v.pipe(probabilities, v.description('Probability of each label.')),
  confidence,
  x_abstained,
  ...additions,
});
export const LevelAnswer = v.object({
  type: v.literal('score'),
  score: v.pipe(
    v.number(),
    v.description('The expected level: the mean of the level indexes, weighted by their probabilities.'),
  ),
  legend: v.pipe(v.record(v.string(), v.unknown()), v.description('The levels of the question by index.')),
  probabilities: v.pipe(probabilities, v.description('Probability of each level, by index.')),
  confidence,
  x_abstained,
  ...additions,
});
export const LabelMultiAnswer = v.object({
  type: v.literal('multi'),
  selected: v.pipe(v.array(v.string()), v.description('The labels that apply, in the order sent.')),
  probabilities: v.pipe(probabilities, v.description('Probability that each label applies.')),
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
  model: v.pipe(v.string(), v.description('Id of the model that answered.')),
  answers: v.pipe(v.record(v.string(), SystemOneAnswer), v.description('The answers by the names of their questions.')),
  usage: v.object({ input_tokens: count, output_tokens: count }),
});

/** One invalid value of a request, in the format of FastAPI's error bodies. */
export const InvalidValue = v.object({
  loc: v.pipe(
    v.array(v.union([v.string(), v.number()])),
    v.description('Path of the value: body, and its names and indices; or header, and its name.'),
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
