import * as v from 'valibot';
import { textOf } from '../questions/settings.ts';
import { answerShape } from '../tasks/extract-shape.ts';
import { object, record, strictObject, variant } from '../validation/objects.ts';
import { distinct, lateRule, rule } from '../validation/rules.ts';
import { otherForms } from './chat-request.ts';
import { finiteNumbers, jsonObject } from './json-object.ts';
import { KeepAlive } from './keep-alive.ts';
import {
  evidence,
  extraction,
  fewOptions,
  MOST_OPTIONS,
  OPTION_LENGTH,
  questionName,
  selectable,
  selection,
  settings,
  unsure,
} from './question-fields.ts';
import { described, nonEmpty, nullish } from './values.ts';

/*
 * Requests of `POST /v1/systemone`, as TypeSafe's, Ollama's and other servers accept them (PyPI `typesafe-sdk` 0.7.5,
 * `_schemas/models.py`), with the question type `extract` and a few additional fields. Unknown fields are ignored.
 */

/** A string, an object or a list, which the model reads as text. */
export const structured = v.pipe(v.union([v.string(), jsonObject, v.array(v.unknown())]), finiteNumbers());

/**
 * Tells whether a text has more than `OPTION_LENGTH` code points. Code points are counted only if the text may have
 * that few.
 */
function isTooLong(text: string): boolean {
  // A code point has one or two code units.
  return text.length > 2 * OPTION_LENGTH || [...text].length > OPTION_LENGTH;
}

/** Returns the rule for the text of a label or level: it must have 1 to `OPTION_LENGTH` code points. */
function fitsOption<TInput>() {
  return rule<TInput>((value) => {
    const text = textOf(value);
    if (text === '') return { code: 'invalid_value', message: 'must not be empty' };
    return isTooLong(text) ? { code: 'invalid_value', message: `must have at most ${OPTION_LENGTH} characters` } : null;
  });
}

const asked = { instructions: nullish(structured, 'The question.') };

export const NoulQuestion = described(
  v.pipe(
    strictObject({
      type: v.literal('noul'),
      ...asked,
      criteria: nullish(
        strictObject({ true: v.nullish(structured), false: v.nullish(structured) }),
        'When the answer is yes, and when it is no.',
      ),
      unsure,
      evidence,
    }),
    rule(({ instructions, criteria }) =>
      (instructions === undefined || instructions === null) && !criteria
        ? { code: 'missing_field', at: ['instructions'], message: 'is required without criteria' }
        : null,
    ),
  ),
  'Ask how likely the answer is yes.',
);

const label = v.pipe(v.string(), fitsOption());
const description = v.nullish(structured);
const NamedLabel = strictObject({ key: label, description });

const labels = described(
  v.union([
    v.pipe(
      record(v.string(), v.nullable(structured)),
      fewOptions((labels) => Object.keys(labels).length),
      rule((labels) => {
        const names = Object.keys(labels);
        if (names.length === 0) return { code: 'invalid_value', message: 'must not be empty' };
        const odd = names.find((name) => name === '' || isTooLong(name));
        return odd === undefined
          ? null
          : { code: 'invalid_value', message: `must have labels of 1 to ${OPTION_LENGTH} characters` };
      }),
    ),
    v.pipe(
      v.array(v.union([label, NamedLabel])),
      v.minLength(1),
      fewOptions(({ length }) => length),
      v.metadata({ maxItems: MOST_OPTIONS }),
      distinct('invalid_value', (one) => (typeof one === 'string' ? one : one.key)),
    ),
  ]),
  'The labels: an object of label and meaning (or null), or a list of labels or of objects with key and description.',
);

export const LabelChoiceQuestion = described(
  strictObject({ type: v.literal('choice'), ...asked, criteria: labels, unsure, evidence }),
  'Choose one of the labels.',
);

export const LabelMultiQuestion = described(
  v.pipe(
    strictObject({ type: v.literal('multi'), ...asked, criteria: labels, ...selection }),
    selectable(({ criteria }) => (Array.isArray(criteria) ? criteria : Object.keys(criteria)).length),
  ),
  'Choose all labels that apply. Each is asked about on its own. An extension of the System One format.',
);

/** Returns the texts of the levels of a score for the model. A level without a description is called by its index. */
export function levelTexts(levels: readonly unknown[]): string[] {
  return levels.map((level, i) => (level === null ? String(i) : textOf(level)));
}

export const LevelQuestion = described(
  strictObject({
    type: v.literal('score'),
    ...asked,
    criteria: described(
      v.pipe(
        v.array(v.nullable(v.pipe(structured, fitsOption()))),
        v.minLength(1),
        fewOptions(({ length }) => length),
        v.metadata({ maxItems: MOST_OPTIONS }),
        rule((levels) => {
          const texts = levelTexts(levels);
          const repeated = texts.findIndex((text, i) => texts.indexOf(text) !== i);
          return repeated === -1 ? null : { code: 'invalid_value', at: [repeated], message: 'repeats an earlier one' };
        }),
      ),
      'The levels, from the lowest to the highest. null: a level that only its number describes.',
    ),
    unsure,
    evidence,
  }),
  'Rate the state on a scale of levels.',
);

export const NamedExtractQuestion = described(
  v.pipe(strictObject({ ...extraction, ...asked }), lateRule(answerShape)),
  'Extract an object from the state. An extension of the System One format.',
);

export const SystemOneQuestion = variant('type', [
  NoulQuestion,
  LabelChoiceQuestion,
  LevelQuestion,
  LabelMultiQuestion,
  NamedExtractQuestion,
]);
export type SystemOneQuestion = v.InferOutput<typeof SystemOneQuestion>;

const media = described(
  v.unknown(),
  'An image or recording: a data URL, an address, base64, or an object that contains one of these.',
);

export const SystemOneRequest = object({
  model: nullish(
    nonEmpty,
    'Id of the loaded model, such as assay/starter. Absent, jev-latest or jev-preview: the loaded one.',
  ),
  state: described(structured, 'The text or JSON value that all questions are about.'),
  questions: described(
    v.pipe(
      record(questionName, SystemOneQuestion),
      rule((questions) => {
        const { length } = Object.keys(questions);
        if (length === 0) return { code: 'invalid_value', message: 'must not be empty' };
        return length > 400 ? { code: 'invalid_value', message: 'must have at most 400 questions' } : null;
      }),
    ),
    'The questions by name. The answers have the same names.',
  ),
  ...otherForms('questions of the type extract'),
  response_format: otherForms('questions of the type extract').format,
  images: v.nullish(v.array(media)),
  assets: v.nullish(jsonObject),
  audio: v.nullish(v.array(media)),
  videos: v.nullish(v.array(media)),
  keep_alive: v.nullish(KeepAlive),
  ...settings,
});
export type SystemOneRequest = v.InferOutput<typeof SystemOneRequest>;
