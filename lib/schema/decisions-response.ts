import * as v from 'valibot';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
export const probability = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const name = v.pipe(v.nullable(v.string()), v.description('The name of the question; null where it has none.'));
export const confidence = v.pipe(probability, v.description('How sure the answer is, from 0 (all alike) to 1.'));

/** The position of a value's evidence in the request. */
export const Evidence = v.object({
  source: v.pipe(v.string(), v.description('JSON Pointer of the text in the request, such as /input.')),
  start: v.pipe(count, v.description('First UTF-16 unit of the value in that text.')),
  end: v.pipe(count, v.description('The UTF-16 unit behind its last one.')),
});
export const ExtractedField = v.object({
  path: v.pipe(v.string(), v.description('JSON Pointer of the value in data, such as /lines/0/sku.')),
  value: v.pipe(v.unknown(), v.description('The value: a string, a number, true, false or null.')),
  probability: v.pipe(probability, v.description('Of the tokens chosen for it, among those that the schema allowed.')),
  evidence: v.nullable(Evidence),
});
export const extracted = {
  type: v.literal('extract'),
  data: v.pipe(v.record(v.string(), v.unknown()), v.description('The object asked for.')),
  fields: v.pipe(v.array(ExtractedField), v.description('One entry for each value that was written.')),
  complete: v.pipe(v.boolean(), v.description('false: max_output_tokens ran out; what was not reached is null.')),
};

export const PredicateAnswer = v.object({ type: v.literal('predicate'), name, probability });
export const ChoiceProbability = v.object({ value: v.union([v.string(), v.boolean()]), probability });
export const ChoiceAnswer = v.object({
  type: v.literal('choice'),
  name,
  choice: v.union([v.string(), v.boolean()]),
  confidence,
  probabilities: v.array(ChoiceProbability),
});
export const LevelProbability = v.object({ label: v.string(), value: count, probability });
export const ScoreAnswer = v.object({
  type: v.literal('score'),
  name,
  score: v.pipe(v.number(), v.description('The expected level: each index, weighted with its probability.')),
  confidence,
  probabilities: v.array(LevelProbability),
});
export const ExtractAnswer = v.object({ ...extracted, name });
export const RefusalAnswer = v.pipe(
  v.object({ type: v.literal('refusal'), name }),
  v.description('A choice that was less sure than abstain_below.'),
);

export const DecisionAnswer = v.variant('type', [
  PredicateAnswer,
  ChoiceAnswer,
  ScoreAnswer,
  ExtractAnswer,
  RefusalAnswer,
]);

export const DecisionsUsage = v.object({
  input_tokens: v.pipe(count, v.description('The shared input once, and every question its own part.')),
  input_tokens_details: v.object({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: v.pipe(count, v.description('Tokens that the model chose.')),
  output_tokens_details: v.object({ reasoning_tokens: count }),
  total_tokens: count,
});

export const DecisionsResponse = v.object({
  model: v.pipe(v.string(), v.description('Model that ran.')),
  answers: v.pipe(v.array(DecisionAnswer), v.description('In the order of the questions.')),
  usage: DecisionsUsage,
});
export type DecisionsResponse = v.InferOutput<typeof DecisionsResponse>;

/** The error body of OpenAI's interfaces: all four members are always present. */
export const OpenAiErrorBody = v.object({
  error: v.object({
    message: v.pipe(v.string(), v.description('What to do next.')),
    type: v.string(),
    param: v.nullable(v.string()),
    code: v.nullable(v.string()),
  }),
});
