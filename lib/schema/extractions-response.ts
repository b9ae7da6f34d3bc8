import * as v from 'valibot';
import { windowed } from './decisions-response.ts';
import { DURATION_UNITS } from './extractions-request.ts';
import { SystemOneAnswer } from './systemone-response.ts';
import { count, described, exactOptional, probability } from './values.ts';

const p_null = described(probability, 'Probability that the state does not contain the value.');
const confidence = described(probability, 'Probability that guess is right if the state contains a value.');
const span = described(
  v.tuple([count, count]),
  'Where the state has the value: the first index, and the index after its end.',
);
const cut = {
  x_cut: exactOptional(v.boolean(), 'true if the limit of output tokens has cut the answer; send a larger one.'),
};
const decided = <TValue extends v.GenericSchema>(value: TValue) => ({
  value: described(v.nullable(value), 'The value; null if p_null is greater than null_threshold.'),
  guess: exactOptional(value, 'The most probable value, also if value is null.'),
  p_null,
  confidence,
  ...windowed,
});
const text = v.string();

export const TextAnswer = v.object({
  type: v.literal('text'),
  ...decided(text),
  span: v.exactOptional(span),
  ...cut,
});
export const NumberAnswer = v.object({
  type: v.literal('number'),
  ...decided(v.number()),
  span: v.exactOptional(span),
  ...cut,
});
export const DurationAnswer = v.object({
  type: v.literal('duration'),
  ...decided(v.number()),
  unit: v.exactOptional(v.picklist(DURATION_UNITS)),
  span: v.exactOptional(span),
  ...cut,
});
export const DateAnswer = v.object({ type: v.literal('date'), ...decided(text), ...cut });
export const TimeAnswer = v.object({ type: v.literal('time'), ...decided(text), ...cut });
export const DatetimeAnswer = v.object({ type: v.literal('datetime'), ...decided(text), ...cut });
export const BooleanAnswer = v.object({
  type: v.literal('boolean'),
  ...decided(v.boolean()),
  p_true: v.exactOptional(probability),
});
export const EnumAnswer = v.object({
  type: v.literal('enum'),
  ...decided(text),
  probabilities: exactOptional(
    v.record(text, probability),
    'Probability of each option if the state contains a value.',
  ),
});
export const ListAnswer = v.object({
  type: v.literal('list'),
  value: v.array(v.union([text, v.number()])),
  spans: v.exactOptional(v.array(span)),
  confidences: described(v.array(probability), 'Probability of each item.'),
  confidence: described(probability, 'Probability of the whole list.'),
  ...cut,
  ...windowed,
});
const estimated = v.union([v.number(), text]);
export const EstimateAnswer = v.object({
  type: v.literal('estimate'),
  value: described(estimated, 'The mean, rounded to the grid; dates are YYYY-MM-DD.'),
  mean: estimated,
  median: estimated,
  p10: estimated,
  p90: estimated,
  p_below: exactOptional(probability, 'Probability of a value below min.'),
  p_above: exactOptional(probability, 'Probability of a value above max.'),
  quantiles: exactOptional(v.array(estimated), 'The percentiles 1 to 99.'),
  ...windowed,
});
export const ObjectAnswer = v.object({
  type: v.literal('object'),
  value: v.nullable(v.record(text, v.unknown())),
  fields: described(v.array(v.unknown()), 'As in the answer to an extract question.'),
  complete: v.boolean(),
  confidence: described(probability, 'Probability of the whole object.'),
  ...windowed,
});

export const FieldAnswer = v.variant('type', [
  TextAnswer,
  NumberAnswer,
  DurationAnswer,
  DateAnswer,
  TimeAnswer,
  DatetimeAnswer,
  BooleanAnswer,
  EnumAnswer,
  ListAnswer,
  EstimateAnswer,
  ObjectAnswer,
]);

export const ExtractionsResponse = v.object({
  object: v.literal('extraction'),
  id: described(text, 'Id of the request.'),
  model: described(text, 'Id of the model that answered.'),
  answers: described(
    v.record(text, v.union([FieldAnswer, SystemOneAnswer])),
    'The answers by the names of their fields and questions.',
  ),
  truncated: described(v.literal(false), 'Always false: a state that does not fit is refused.'),
  state_text: exactOptional(text, 'The text that spans index.'),
  usage: v.object({
    state_tokens: described(count, 'Tokens of the state, with the fixed instructions before it.'),
    image_tokens: count,
    schema_tokens: described(count, 'Tokens of the fields and questions.'),
    input_tokens: count,
    output_tokens: count,
    passes: count,
  }),
});

/** The envelope of Workers AI's run paths. */
export const RunResponse = v.object({
  result: ExtractionsResponse,
  success: v.literal(true),
  errors: v.pipe(v.array(v.unknown()), v.maxLength(0)),
  messages: v.pipe(v.array(v.unknown()), v.maxLength(0)),
});

/** The body of error responses of Workers AI's run paths. */
export const RunErrorBody = v.object({
  result: v.null(),
  success: v.literal(false),
  errors: v.array(v.object({ code: count, message: text })),
  messages: v.array(v.unknown()),
});
