import * as v from 'valibot';
import { object, record, strictObject, variant } from '../validation/objects.ts';
import { distinct, rule } from '../validation/rules.ts';
import { additions, confidence, setConfidence, windowed } from './decisions-response.ts';
import {
  evidence,
  fewOptions,
  MOST_OPTIONS,
  OPTION_LENGTH,
  questionName,
  selectable,
  selection,
  settings,
  unsure,
} from './question-fields.ts';
import { x_abstained } from './systemone-response.ts';
import { count, described, nonEmpty, probability } from './values.ts';

/*
 * Requests of Google's Decisions as its clients send them (PyPI `google-genai` 3.6.1, `_gaos/types/decisions`), with
 * the fields that Assay adds to the decision formats. Unknown members of the request and of parts are ignored.
 */

const address = v.nullish(nonEmpty);
const media = { data: address, uri: address, mime_type: v.nullish(v.string()) };
function eitherSource<TMedia extends { data?: string | null | undefined; uri?: string | null | undefined }>() {
  return rule<TMedia>(({ data, uri }) =>
    data || uri ? null : { code: 'missing_field', at: ['data'], message: 'is required, or uri in its place' },
  );
}
export const GoogleText = object({ type: v.literal('text'), text: v.string() });
export const GoogleImage = v.pipe(object({ type: v.literal('image'), ...media }), eitherSource());
export const GoogleAudio = v.pipe(object({ type: v.literal('audio'), ...media }), eitherSource());
export const GooglePart = variant('type', [GoogleText, GoogleImage, GoogleAudio]);
export type GooglePart = v.InferOutput<typeof GooglePart>;

const instructions = described(
  v.union([nonEmpty, GoogleText, v.pipe(v.array(GoogleText), v.minLength(1))]),
  'The question: a text, a part, or a list of parts.',
);
const option = v.pipe(v.string(), v.minLength(1), v.maxCodePoints(OPTION_LENGTH));

export const GoogleNoul = strictObject({
  type: v.literal('noul'),
  instructions,
  criteria: v.nullish(
    strictObject({ true_description: v.nullish(v.string()), false_description: v.nullish(v.string()) }),
  ),
  unsure,
  evidence,
});
const criteria = described(
  v.pipe(
    record(option, v.nullable(v.string())),
    fewOptions((options) => Object.keys(options).length),
    rule((options) =>
      Object.keys(options).length === 0 ? { code: 'invalid_value', message: 'must not be empty' } : null,
    ),
  ),
  'The options by name, with their descriptions.',
);
export const GoogleChoice = strictObject({ type: v.literal('choice'), instructions, criteria, unsure, evidence });
export const GoogleMulti = described(
  v.pipe(
    strictObject({ type: v.literal('multi'), instructions, criteria, ...selection }),
    selectable(({ criteria }) => Object.keys(criteria).length),
  ),
  'Choose all options that apply. Each is asked about on its own. An extension.',
);
export const GoogleScore = strictObject({
  type: v.literal('score'),
  instructions,
  criteria: v.pipe(
    v.array(option),
    v.minLength(1),
    fewOptions(({ length }) => length),
    v.metadata({ maxItems: MOST_OPTIONS }),
    distinct('invalid_value', (level) => level),
  ),
  unsure,
  evidence,
});
export const GoogleQuestion = variant('type', [GoogleNoul, GoogleChoice, GoogleScore, GoogleMulti]);
export type GoogleQuestion = v.InferOutput<typeof GoogleQuestion>;

export const GoogleDecisionsRequest = object({
  model: described(nonEmpty, 'Id of the loaded model, with or without models/ before it.'),
  input: v.union([v.string(), GooglePart, v.pipe(v.array(GooglePart), v.minLength(1), v.maxLength(1024))]),
  questions: v.pipe(
    record(questionName, GoogleQuestion),
    rule((questions) => {
      const { length } = Object.keys(questions);
      if (length === 0) return { code: 'invalid_value', message: 'must not be empty' };
      return length > 400 ? { code: 'invalid_value', message: 'must have at most 400 questions' } : null;
    }),
  ),
  ...settings,
});
export type GoogleDecisionsRequest = v.InferOutput<typeof GoogleDecisionsRequest>;

const probabilities = v.record(v.string(), probability);
export const GoogleNoulAnswer = v.object({
  type: v.literal('noul'),
  noul: described(v.pipe(v.number(), v.minValue(0.01), v.maxValue(0.99)), 'Probability that the answer is yes.'),
  confidence,
  x_abstained,
  ...additions,
});
export const GoogleChoiceAnswer = v.object({
  type: v.literal('choice'),
  choice: v.string(),
  confidence,
  probabilities,
  x_abstained,
  ...additions,
});
export const GoogleScoreAnswer = v.object({
  type: v.literal('score'),
  score: v.number(),
  confidence,
  legend: v.record(v.string(), v.string()),
  probabilities,
  x_abstained,
  ...additions,
});
export const GoogleMultiAnswer = v.object({
  type: v.literal('multi'),
  selected: v.array(v.string()),
  probabilities,
  threshold: probability,
  set_confidence: setConfidence,
  ...windowed,
});
export const GoogleAnswer = v.variant('type', [
  GoogleNoulAnswer,
  GoogleChoiceAnswer,
  GoogleScoreAnswer,
  GoogleMultiAnswer,
]);
export const GoogleDecisionsResponse = v.object({
  answers: v.record(v.string(), GoogleAnswer),
  usage: v.object({
    total_input_tokens: count,
    total_output_tokens: count,
    total_cached_tokens: count,
    total_tokens: count,
  }),
});

/** The body of error responses in the format of Google's APIs, which OpenRouter's clients read, too. */
export const GoogleErrorBody = v.object({
  error: v.object({
    code: described(v.pipe(v.number(), v.integer()), 'The HTTP status.'),
    message: v.string(),
    status: described(v.string(), 'A name of the kind of error, such as INVALID_ARGUMENT.'),
  }),
});
