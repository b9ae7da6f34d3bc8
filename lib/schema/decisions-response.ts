import * as v from 'valibot';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
export const probability = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const name = v.pipe(v.nullable(v.string()), v.description('Name of the question, or null if it has none.'));
export const confidence = v.pipe(
  probability,
  v.description('How certain the answer is: 0 if all options are equally likely, 1 if it is certain.'),
);

const window = v.object({ index: count, count, start: count, end: count });
export const x_window = v.exactOptional(
  v.pipe(
    window,
    v.description(
      'The window of a text that was read in windows from which the answer comes, and where it is in the text.',
    ),
  ),
);
/** Members of an answer from windows. */
export const windowed = {
  x_window,
  x_candidates: v.exactOptional(
    v.pipe(
      v.array(
        v.object({
          path: v.pipe(v.string(), v.description('JSON Pointer to the value that it conflicts with.')),
          value: v.unknown(),
          confidence: probability,
          p_null: probability,
          window: count,
          span: v.exactOptional(v.tuple([count, count])),
        }),
      ),
      v.description('Other values that windows have.'),
    ),
  ),
  x_calibrated: v.exactOptional(
    v.pipe(v.literal(false), v.description('Present if several windows were read: no calibration was made for that.')),
  ),
};

/** Position of an extracted value in the request. */
export const Evidence = v.object({
  source: v.pipe(v.string(), v.description('JSON Pointer to the text in the request, such as /input.')),
  start: v.pipe(count, v.description('Where the value starts in that text, in UTF-16 code units.')),
  end: v.pipe(count, v.description('Where the value ends in that text (exclusive), in UTF-16 code units.')),
});
export const ExtractedField = v.object({
  path: v.pipe(v.string(), v.description('JSON Pointer to the value in data, such as /lines/0/sku.')),
  value: v.pipe(v.unknown(), v.description('The extracted value: a string, a number, true, false or null.')),
  probability: v.pipe(
    probability,
    v.description(
      "Joint probability of the value's tokens, each among the tokens that the schema allowed; calibrated by default.",
    ),
  ),
  evidence: v.nullable(Evidence),
});
export const extracted = {
  type: v.literal('extract'),
  data: v.pipe(v.record(v.string(), v.unknown()), v.description('The extracted object.')),
  fields: v.pipe(
    v.array(ExtractedField),
    v.description('One entry for each string, number, boolean and null in data that the model wrote.'),
  ),
  complete: v.pipe(
    v.boolean(),
    v.description(
      'false if the answer was cut, at max_output_tokens or the end of the context; fields that were not reached are null.',
    ),
  ),
  ...windowed,
};

/** A part of the input that decides an answer. */
export const DecisionEvidence = v.object({
  ...Evidence.entries,
  text: v.string(),
  probability: v.exactOptional(v.pipe(probability, v.description('Probability of the quote.'))),
  weight: v.exactOptional(
    v.pipe(
      v.number(),
      v.minValue(0),
      v.description('How much the logarithm of the probability of the answer falls without the sentence.'),
    ),
  ),
});

/** Members that Assay adds to answers of all decision formats. */
export const additions = {
  ...windowed,
  x_automated: v.exactOptional(
    v.pipe(
      v.nullable(v.boolean()),
      v.description('Whether the answer may be automated, with max_error; null: no threshold is certified for it.'),
    ),
  ),
  x_answered_by: v.exactOptional(
    v.pipe(
      v.string(),
      v.description('Model that answered, if uncertain questions are asked again (assay serve --escalate).'),
    ),
  ),
  x_escalation: v.exactOptional(
    v.pipe(
      v.literal('failed'),
      v.description('The question was to be asked again, but that failed: the first answer.'),
    ),
  ),
  x_evidence: v.exactOptional(
    v.pipe(v.array(DecisionEvidence), v.description('What decides the answer, of a question with evidence.')),
  ),
  x_p_unsure: v.exactOptional(
    v.pipe(
      probability,
      v.description(
        'Probability that the input does not tell, of a question with unsure. The others sum to 1 without it.',
      ),
    ),
  ),
  x_label_mass: v.exactOptional(
    v.pipe(
      probability,
      v.description(
        'Probability that the model, free to write anything, writes one of the options, before calibration. Low: it would rather say something else. Absent for models that do not write their answers.',
      ),
    ),
  ),
};
export const setConfidence = v.pipe(
  probability,
  v.description('Probability that exactly the selected labels apply, if the labels are independent.'),
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
  probabilities: v.pipe(v.array(ChoiceProbability), v.description('Probability that each choice applies.')),
  threshold: probability,
  set_confidence: setConfidence,
  ...windowed,
});
export const LevelProbability = v.object({ label: v.string(), value: count, probability });
export const ScoreAnswer = v.object({
  type: v.literal('score'),
  name,
  score: v.pipe(
    v.number(),
    v.description('The expected level: the mean of the level indexes, weighted by their probabilities.'),
  ),
  confidence,
  probabilities: v.array(LevelProbability),
  ...additions,
});
export const ExtractAnswer = v.object({ ...extracted, name });
export const RefusalAnswer = v.pipe(
  v.object({
    type: v.literal('refusal'),
    name,
    x_probabilities: v.exactOptional(
      v.pipe(v.array(probability), v.description('Probabilities of the options, if the model itself abstained.')),
    ),
    ...additions,
  }),
  v.description(
    'No choice was made: the most likely option was less likely than abstain_below, or the model answers that the input does not tell.',
  ),
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
  input_tokens: v.pipe(
    count,
    v.description('Prompt tokens: those of the shared input, counted once, and those of each question.'),
  ),
  input_tokens_details: v.object({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: v.pipe(
    count,
    v.description('Tokens that the model chose. Text that the grammar determines is not counted.'),
  ),
  output_tokens_details: v.object({ reasoning_tokens: count }),
  total_tokens: count,
});

export const DecisionsResponse = v.object({
  model: v.pipe(v.string(), v.description('Id of the model that answered.')),
  answers: v.pipe(v.array(DecisionAnswer), v.description('The answers, in the order of the questions.')),
  usage: DecisionsUsage,
});
export type DecisionsResponse = v.InferOutput<typeof DecisionsResponse>;

/** The body of error responses in the format of OpenAI's APIs: all four members are always present. */
export const OpenAiErrorBody = v.object({
  error: v.object({
    message: v.pipe(v.string(), v.description('What is wrong, and what to do.')),
    type: v.string(),
    param: v.nullable(v.string()),
    code: v.nullable(v.string()),
  }),
});
