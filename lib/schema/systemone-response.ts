import * as v from 'valibot';
import { confidence, extracted, probability } from './decisions-response.ts';
import { ErrorDetails } from './error-body.ts';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const probabilities = v.record(v.string(), probability);

export const NoulAnswer = v.object({
  type: v.literal('noul'),
  noul: v.pipe(probability, v.description('How likely the answer is yes.')),
});
export const LabelChoiceAnswer = v.object({
  type: v.literal('choice'),
  choice: v.string(),
  probabilities: v.pipe(probabilities, v.description('By label.')),
  confidence,
  abstained: v.exactOptional(
    v.pipe(
      v.boolean(),
      v.description('true: the choice was less sure than abstain_below, and is not to be relied on.'),
    ),
  ),
});
export const LevelAnswer = v.object({
  type: v.literal('score'),
  score: v.pipe(v.number(), v.description('The expected level: each index, weighted with its probability.')),
  legend: v.pipe(v.record(v.string(), v.unknown()), v.description('The levels of the question, by index.')),
  probabilities: v.pipe(probabilities, v.description('By index.')),
  confidence,
});
export const NamedExtractAnswer = v.object(extracted);

export const SystemOneAnswer = v.variant('type', [NoulAnswer, LabelChoiceAnswer, LevelAnswer, NamedExtractAnswer]);

export const SystemOneResponse = v.object({
  model: v.pipe(v.string(), v.description('Model that ran.')),
  answers: v.pipe(v.record(v.string(), SystemOneAnswer), v.description('By the name of the question.')),
  usage: v.object({ input_tokens: count, output_tokens: count }),
});

/** An invalid value in a request, as FastAPI servers report it. */
export const InvalidValue = v.object({
  loc: v.pipe(v.array(v.union([v.string(), v.number()])), v.description('The steps to the value, from body on.')),
  msg: v.string(),
  type: v.string(),
});

/** The error body of FastAPI servers, with this server's own error body in addition. */
export const SystemOneErrorBody = v.object({
  detail: v.union([v.string(), v.array(InvalidValue)]),
  error: ErrorDetails,
});
