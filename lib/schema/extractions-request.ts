import * as v from 'valibot';
import { object, record, strictObject, variant } from '../validation/objects.ts';
import { distinct, rule } from '../validation/rules.ts';
import { finiteNumbers, jsonObject } from './json-object.ts';
import { OPTION_LENGTH, SPAN_UNITS, settings } from './question-fields.ts';
import { SystemOneQuestion } from './systemone-request.ts';
import { described, exactOptional, nonEmpty, nullish, whole } from './values.ts';

/*
 * Requests of `POST /v1/extractions` and of Workers AI's run paths, as Cloudflare's Clairic, LiteLLM, OpenRouter and
 * Merge accept them (PyPI `clairic` 0.1.0, `litellm` 1.110.2), with a few field types and options in addition.
 */

/** Maximum number of fields of one request, or of one object. */
const MOST_FIELDS = 128;
/** Maximum number of items of an extracted list. */
export const MOST_ITEMS = 64;
/** Maximum number of options of an `enum` field: with "not stated", a question has at most 255. */
const MOST_ENUM_OPTIONS = 254;

/** Units of a duration, from the shortest to the longest. */
export const DURATION_UNITS = ['seconds', 'minutes', 'hours', 'days', 'weeks', 'months', 'years'] as const;

const structured = v.pipe(v.union([v.string(), jsonObject, v.array(v.unknown())]), finiteNumbers());
const asked = {
  instructions: nullish(structured, 'What to extract; by default the name of the field.'),
};
const unit = exactOptional(v.pipe(v.string(), v.maxLength(256)), 'Unit of the value, for the model.');
const nullThreshold = {
  null_threshold: exactOptional(
    v.pipe(v.number(), v.gtValue(0), v.maxValue(1)),
    'The value is null if p_null is greater than this. Default: 0.5.',
  ),
};
const digits = {
  integer: exactOptional(v.boolean(), 'Whether the number is whole. Default: false.'),
  decimals: exactOptional(whole(0, 6), 'Number of decimals to which the number is rounded.'),
};
const free = {
  free: exactOptional(
    v.boolean(),
    'Whether the text may be worded freely. By default it is quoted from the state, with its span.',
  ),
};

export const TextField = strictObject({ type: v.literal('text'), ...asked, unit, ...free, ...nullThreshold });
export const NumberField = strictObject({ type: v.literal('number'), ...asked, unit, ...digits, ...nullThreshold });
export const DateField = strictObject({ type: v.literal('date'), ...asked, ...nullThreshold });
export const TimeField = strictObject({ type: v.literal('time'), ...asked, ...nullThreshold });
export const DatetimeField = strictObject({ type: v.literal('datetime'), ...asked, ...nullThreshold });
export const DurationField = strictObject({
  type: v.literal('duration'),
  ...asked,
  unit: exactOptional(v.picklist(DURATION_UNITS), 'Default: seconds.'),
  ...digits,
  ...nullThreshold,
});
export const BooleanField = strictObject({ type: v.literal('boolean'), ...asked, ...nullThreshold });
export const EnumField = strictObject({
  type: v.literal('enum'),
  ...asked,
  options: described(
    v.pipe(
      v.array(v.pipe(v.string(), v.minLength(1), v.maxCodePoints(OPTION_LENGTH))),
      v.minLength(1),
      v.maxLength(MOST_ENUM_OPTIONS),
      distinct('invalid_value', (option) => option),
    ),
    'The allowed values.',
  ),
  ...nullThreshold,
});
export const ListField = strictObject({
  type: v.literal('list'),
  ...asked,
  items: v.picklist(['text', 'number', 'date']),
  unit,
  ...digits,
  ...free,
});

const bound = v.union([v.number(), v.pipe(v.string(), v.isoDate())]);
export const EstimateField = v.pipe(
  strictObject({
    type: v.literal('estimate'),
    ...asked,
    unit,
    min: described(bound, 'Least value: a number, or a date (YYYY-MM-DD).'),
    max: described(bound, 'Greatest value, of the same type as min.'),
    step: exactOptional(
      v.union([v.pipe(v.number(), v.gtValue(0)), v.picklist(['month', 'year'])]),
      'Distance of the values of the grid; days, month or year between dates.',
    ),
    scale: exactOptional(v.picklist(['linear', 'log']), 'Spacing of a grid without step. Default: linear.'),
  }),
  rule(({ min, max, step, scale }) => {
    const wrong = (at: string, message: string) => ({ code: 'invalid_value' as const, at: [at], message });
    if (typeof min !== typeof max) return wrong('max', 'must be of the same type as min: two numbers or two dates');
    if (min >= max) return wrong('max', 'must be greater than min');
    if (typeof min === 'number' && typeof step === 'string') return wrong('step', 'must be a number between numbers');
    if (scale === 'log' && !(typeof min === 'number' && min > 0)) return wrong('scale', 'log needs a min above 0');
    return null;
  }),
);

const fieldName = v.pipe(v.string(), v.minLength(1), v.maxLength(1024));
const fieldsRule = <TField>() =>
  rule<{ [name: string]: TField }>((fields) => {
    const { length } = Object.keys(fields);
    if (length === 0) return { code: 'invalid_value', message: 'must not be empty' };
    return length > MOST_FIELDS ? { code: 'invalid_value', message: `must have at most ${MOST_FIELDS} fields` } : null;
  });

const valueFields = [
  TextField,
  NumberField,
  DateField,
  TimeField,
  DatetimeField,
  DurationField,
  BooleanField,
  EnumField,
  ListField,
] as const;
export const MemberField = variant('type', valueFields);
export type MemberField = v.InferOutput<typeof MemberField>;

export const ObjectField = strictObject({
  type: v.literal('object'),
  ...asked,
  fields: described(
    v.pipe(
      record(fieldName, MemberField),
      fieldsRule(),
      rule((fields) => {
        const name = Object.keys(fields).find((one) => Object.hasOwn(fields[one] ?? {}, 'null_threshold'));
        return name === undefined
          ? null
          : {
              code: 'invalid_value',
              at: [name, 'null_threshold'],
              message: 'has no effect inside an object; remove it',
            };
      }),
    ),
    'The members of the object: fields of any type but estimate and object, each of which may be null.',
  ),
});

/** Part of the format, but refused: no answer of this server has its shape. */
export const ForecastField = object({ type: v.literal('forecast') });

export const ExtractionField = variant('type', [...valueFields, ObjectField, EstimateField, ForecastField]);
export type ExtractionField = v.InferOutput<typeof ExtractionField>;

const media = described(v.unknown(), 'An image: a data URL, or an object with content_type and base64.');
const ignored = nullish(v.unknown(), 'Accepted and ignored.');

export const ExtractionsRequest = v.pipe(
  strictObject({
    model: nullish(nonEmpty, 'Id of a loaded model. Default, and for clairic: the loaded one.'),
    state: v.exactOptional(
      described(structured, 'The text or JSON value that the fields are extracted from. Default: empty.'),
      '',
    ),
    fields: exactOptional(
      v.pipe(record(fieldName, ExtractionField), fieldsRule()),
      'The fields by name. The answers have the same names and order.',
    ),
    questions: exactOptional(
      record(v.pipe(v.string(), v.maxLength(1024)), SystemOneQuestion),
      'Questions of the System One format, answered from the same reading of the state.',
    ),
    images: v.nullish(v.pipe(v.array(media), v.maxLength(4))),
    assets: v.nullish(jsonObject),
    reference_date: nullish(
      v.pipe(v.string(), v.isoDate()),
      'Date of today, to which relative dates refer (YYYY-MM-DD).',
    ),
    options: v.nullish(
      strictObject({
        include_quantiles: nullish(v.boolean(), 'Whether estimates have 99 quantiles. Default: false.'),
        return_state_text: nullish(
          v.boolean(),
          'Whether the answer has state_text. Default: only if state is no string.',
        ),
        span_unit: nullish(
          v.picklist(SPAN_UNITS),
          'Unit of spans. Default: code_point, as a Python string counts; utf16 as JavaScript counts.',
        ),
      }),
    ),
    stream: v.nullish(
      v.pipe(
        v.boolean(),
        rule((value) => (value ? { code: 'invalid_value', message: 'must be false: answers are not streamed' } : null)),
      ),
    ),
    provider: ignored,
    session_id: ignored,
    trace: ignored,
    user: ignored,
    metadata: ignored,
    calibrated: settings.calibrated,
    windows: settings.windows,
    max_output_tokens: exactOptional(
      whole(1, 16_384),
      'Limit of output tokens for all fields together. Default: 4096.',
    ),
  }),
  rule(({ fields, questions }) =>
    fields === undefined && questions === undefined
      ? { code: 'missing_field', at: ['fields'], message: 'is required without questions' }
      : null,
  ),
);
export type ExtractionsRequest = v.InferOutput<typeof ExtractionsRequest>;
