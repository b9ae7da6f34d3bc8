import * as v from 'valibot';
import { count, described, exactOptional, probability } from './values.ts';

const name = described(v.nullable(v.string()), 'Name of the question, or null if it has none.');
export const confidence = described(
  probability,
  'How certain the answer is: 0 if all options are equally likely, 1 if it is certain.',
);

const window = v.object({ index: count, count, start: count, end: count });
export const x_window = exactOptional(
  window,
  'The window of a text that was read in windows from which the answer comes, and where it is in the text.',
);
/** Members of an answer from windows. */
export const windowed = {
  x_window,
  x_candidates: exactOptional(
    v.array(
      v.object({
        path: described(v.string(), 'JSON Pointer to the value that it conflicts with.'),
        value: v.unknown(),
        confidence: probability,
        p_null: probability,
        window: count,
        span: v.exactOptional(v.tuple([count, count])),
      }),
    ),
    'Other values that windows have.',
  ),
  x_calibrated: exactOptional(
    v.literal(false),
    'Present if several windows were read: no calibration was made for that.',
  ),
};

/** Position of an extracted value in the request. */
export const Evidence = v.object({
  source: described(v.string(), 'JSON Pointer to the text in the request, such as /input.'),
  start: described(count, 'Where the value starts in that text, in UTF-16 code units.'),
  end: described(count, 'Where the value ends in that text (exclusive), in UTF-16 code units.'),
});
export const ExtractedField = v.object({
  path: described(v.string(), 'JSON Pointer to the value in data, such as /lines/0/sku.'),
  value: described(v.unknown(), 'The extracted value: a string, a number, true, false or null.'),
  probability: described(
    probability,
    "Joint probability of the value's tokens, each among the tokens that the schema allowed; calibrated by default.",
  ),
  evidence: v.nullable(Evidence),
});
export const extracted = {
  type: v.literal('extract'),
  data: described(v.record(v.string(), v.unknown()), 'The extracted object.'),
  fields: described(
    v.array(ExtractedField),
    'One entry for each string, number, boolean and null in data that the model wrote.',
  ),
  complete: described(
    v.boolean(),
    'false if the answer was cut, at max_output_tokens or the end of the context; fields that were not reached are null.',
  ),
  ...windowed,
};

/** A part of the input that decides an answer. */
export const DecisionEvidence = v.object({
  ...Evidence.entries,
  text: v.string(),
  probability: exactOptional(probability, 'Probability of the quote.'),
  weight: exactOptional(
    v.pipe(v.number(), v.minValue(0)),
    'How much the logarithm of the probability of the answer falls without the sentence.',
  ),
});

/** Members that Assay adds to answers of all decision formats. */
export const additions = {
  ...windowed,
  x_automated: exactOptional(
    v.nullable(v.boolean()),
    'Whether the answer may be automated, with max_error; null: no threshold is certified for it.',
  ),
  x_answered_by: exactOptional(
    v.string(),
    'Model that answered, if uncertain questions are asked again (assay serve --escalate).',
  ),
  x_escalation: exactOptional(
    v.literal('failed'),
    'The question was to be asked again, but that failed: the first answer.',
  ),
  x_evidence: exactOptional(v.array(DecisionEvidence), 'What decides the answer, of a question with evidence.'),
  x_p_unsure: exactOptional(
    probability,
    'Probability that the input does not tell, of a question with unsure. The others sum to 1 without it.',
  ),
  x_label_mass: exactOptional(
    probability,
    'Probability that the model, free to write anything, writes one of the options, before calibration. Low: it would rather say something else. Absent for models that do not write their answers.',
  ),
};
export const setConfidence = described(
  probability,
  'Probability that exactly the selected labels apply, if the labels are independent.',
);

export const PredicateAnswer = v.object({ type: v.literal('predicate'), name, probability, ...additions });
export const ChoiceProbability = v.object({ value: v.union([v.string(), v.boolean()]), probability });
export const ChoiceAnswer = v.object({
  type: v.literal('choice'),
  name,
  choice: v.union([v.string(), v.boolean()]),
  confidence,
  probabilities: v.array(ChoiceProbability),
  ...additions,
});
export const MultiAnswer = v.object({
  type: v.literal('multi'),
  name,
  selected: v.array(v.union([v.string(), v.boolean()])),
  probabilities: described(v.array(ChoiceProbability), 'Probability that each choice applies.'),
  threshold: probability,
  set_confidence: setConfidence,
  ...windowed,
});
export const LevelProbability = v.object({ label: v.string(), value: count, probability });
export const ScoreAnswer = v.object({
  type: v.literal('score'),
  name,
  score: described(v.number(), 'The expected level: the mean of the level indexes, weighted by their probabilities.'),
  confidence,
  probabilities: v.array(LevelProbability),
  ...additions,
});
export const ExtractAnswer = v.object({ ...extracted, name });
export const RefusalAnswer = described(
  v.object({
    type: v.literal('refusal'),
    name,
    x_probabilities: exactOptional(
      v.array(probability),
      'Probabilities of the options, if the model itself abstained.',
    ),
    ...additions,
  }),
  'No choice was made: the most likely option was less likely than abstain_below, or the model answers that the input does not tell.',
);

export const DecisionAnswer = v.variant('type', [
  PredicateAnswer,
  ChoiceAnswer,
  ScoreAnswer,
  MultiAnswer,
  ExtractAnswer,
  RefusalAnswer,
]);

export const DecisionsUsage = v.object({
  input_tokens: described(count, 'Prompt tokens: those of the shared input, counted once, and those of each question.'),
  input_tokens_details: v.object({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: described(count, 'Tokens that the model chose. Text that the grammar determines is not counted.'),
  output_tokens_details: v.object({ reasoning_tokens: count }),
  total_tokens: count,
});

export const DecisionsResponse = v.object({
  model: described(v.string(), 'Id of the model that answered.'),
  answers: described(v.array(DecisionAnswer), 'The answers, in the order of the questions.'),
  usage: DecisionsUsage,
});
export type DecisionsResponse = v.InferOutput<typeof DecisionsResponse>;

/** The body of error responses in the format of OpenAI's APIs: all four members are always present. */
export const OpenAiErrorBody = v.object({
  error: v.object({
    message: described(v.string(), 'What is wrong, and what to do.'),
    type: v.string(),
    param: v.nullable(v.string()),
    code: v.nullable(v.string()),
  }),
});
