import * as v from 'valibot';
import { answerShape } from '../tasks/extract-shape.ts';
import { object, strictObject, variant } from '../validation/objects.ts';
import { distinct, lateRule, rule } from '../validation/rules.ts';
import { finiteNumbers, jsonObject } from './json-object.ts';
import { InputAudio } from './message.ts';
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
 * Requests of `POST /v1/decisions` as OpenAI's client sends them (npm `openai` 7.55.0, `resources/decisions`), with the
 * question type `extract` and a few additional fields. Unknown members of messages and parts are ignored, because
 * clients send extra ones.
 */

const cached = { prompt_cache_breakpoint: v.nullish(v.unknown()) };
const address = described(
  nonEmpty,
  'An https address or a data URL with base64. Addresses need a host that the server allows.',
);

export const DecisionText = object({ type: v.literal('input_text'), text: v.string(), ...cached });
export const DecisionImage = object({
  type: v.literal('input_image'),
  image_url: address,
  detail: v.nullish(v.picklist(['low', 'high', 'auto', 'original'])),
  ...cached,
});
export type DecisionImage = v.InferOutput<typeof DecisionImage>;
export const DecisionAudio = described(
  v.pipe(
    object({
      type: v.literal('input_audio'),
      input_audio: v.nullish(object(InputAudio.entries)),
      audio_url: v.nullish(address),
      ...cached,
    }),
    rule(({ input_audio, audio_url }) => {
      if (input_audio && audio_url) {
        return { code: 'invalid_value', at: ['audio_url'], message: 'cannot be sent beside input_audio' };
      }
      if (input_audio || audio_url) return null;
      return { code: 'missing_field', at: ['input_audio'], message: 'is required, or audio_url in its place' };
    }),
  ),
  "A recording: base64 with its format, as in OpenAI's API, or (an extension) an address or data URL.",
);
export type DecisionAudio = v.InferOutput<typeof DecisionAudio>;
export const DecisionJson = object({
  type: v.literal('input_json'),
  data: v.pipe(v.union([jsonObject, v.array(jsonObject)]), finiteNumbers()),
});
export const DecisionOutputText = object({ type: v.literal('output_text'), text: v.string() });
export const DecisionRefusalText = object({ type: v.literal('refusal'), refusal: v.string() });

export const DecisionPart = variant('type', [
  DecisionText,
  DecisionImage,
  DecisionAudio,
  DecisionJson,
  DecisionOutputText,
  DecisionRefusalText,
]);
export type DecisionPart = v.InferOutput<typeof DecisionPart>;

const content = v.union([v.string(), v.pipe(v.array(DecisionPart), v.minLength(1), v.maxLength(1024))]);

/** The members that each type of input item requires. An item without a type is a message. */
const REQUIRED_MEMBERS = {
  message: ['role', 'content'],
  function_call: ['call_id', 'name', 'arguments'],
  function_call_output: ['call_id', 'output'],
  custom_tool_call: ['call_id', 'name', 'input'],
  custom_tool_call_output: ['call_id', 'output'],
} as const;
export type DecisionItemType = keyof typeof REQUIRED_MEMBERS;

export const DecisionItem = described(
  v.pipe(
    object({
      // The cast restores the type of the keys, which `Object.keys` returns as strings.
      type: v.exactOptional(v.picklist(Object.keys(REQUIRED_MEMBERS) as DecisionItemType[])),
      role: v.exactOptional(v.picklist(['user', 'developer', 'system', 'assistant'])),
      content: v.exactOptional(content),
      call_id: v.exactOptional(v.string()),
      name: v.exactOptional(v.string()),
      arguments: v.exactOptional(v.string()),
      input: v.exactOptional(v.string()),
      output: v.exactOptional(content),
    }),
    rule((item) => {
      const type = item.type ?? 'message';
      const missing = REQUIRED_MEMBERS[type].find((name) => !Object.hasOwn(item, name));
      return missing ? { code: 'missing_field', at: [missing], message: `is required in a ${type}` } : null;
    }),
  ),
  'A message with role and content, a tool call, or the output of a tool.',
);
export type DecisionItem = v.InferOutput<typeof DecisionItem>;

/** The rule that each output item follows a call item with the same `call_id`. */
const answeredCalls = rule<DecisionItem[]>((items) => {
  const calls = new Set<string>();
  for (const [i, { type, call_id: id }] of items.entries()) {
    if (type?.endsWith('_call')) calls.add(id!);
    if (type?.endsWith('_output') && !calls.has(id!)) {
      return { code: 'invalid_value', at: [i, 'call_id'], message: 'must be the call_id of an earlier tool call' };
    }
  }
  return null;
});

const instructions = described(
  v.union([nonEmpty, v.pipe(v.array(DecisionPart), v.minLength(1), v.maxLength(256))]),
  'The question, as text or content parts.',
);
const asked = { name: v.nullish(questionName) };
const description = v.nullish(v.string());
const label = v.pipe(v.string(), v.minLength(1), v.maxCodePoints(OPTION_LENGTH));

export const PredicateQuestion = described(
  strictObject({
    type: v.literal('predicate'),
    instructions,
    criteria: v.nullish(strictObject({ true: description, false: description })),
    unsure,
    evidence,
    ...asked,
  }),
  'Ask how likely it is that a statement is true. criteria, an extension, says when it is true and when it is not.',
);

export const DecisionChoice = strictObject({ value: v.union([label, v.boolean()]), description });
const choices = v.pipe(
  v.array(DecisionChoice),
  v.minLength(1),
  fewOptions(({ length }) => length),
  v.metadata({ maxItems: MOST_OPTIONS }),
  distinct(
    'invalid_value',
    ({ value }) => JSON.stringify(value),
    () => ['value'],
  ),
);
export const ChoiceQuestion = described(
  strictObject({ type: v.literal('choice'), instructions, choices, unsure, evidence, ...asked }),
  'Choose one of the choices. A string and a boolean with the same text count as two choices.',
);

export const MultiQuestion = described(
  v.pipe(
    strictObject({ type: v.literal('multi'), instructions, choices, ...selection, ...asked }),
    selectable(({ choices }) => choices.length),
  ),
  'Choose all of the choices that apply. Each is asked about on its own. An extension.',
);

export const DecisionLevel = strictObject({ label, description });
export const ScoreQuestion = described(
  strictObject({
    type: v.literal('score'),
    instructions,
    levels: v.pipe(
      v.array(DecisionLevel),
      v.minLength(1),
      fewOptions(({ length }) => length),
      v.metadata({ maxItems: MOST_OPTIONS }),
      distinct(
        'invalid_value',
        ({ label }) => label,
        () => ['label'],
      ),
    ),
    unsure,
    evidence,
    ...asked,
  }),
  'Rate the input on a scale of levels, from the lowest to the highest.',
);

export const ExtractQuestion = described(
  v.pipe(strictObject({ ...extraction, instructions, ...asked }), lateRule(answerShape)),
  "Extract an object from the input. An extension of OpenAI's format.",
);

export const DecisionQuestion = variant('type', [
  PredicateQuestion,
  ChoiceQuestion,
  ScoreQuestion,
  MultiQuestion,
  ExtractQuestion,
]);
export type DecisionQuestion = v.InferOutput<typeof DecisionQuestion>;

const unused = nullish(v.unknown(), 'Accepted and ignored.');

export const DecisionsRequest = strictObject({
  model: described(nonEmpty, 'Id of the loaded model, such as assay/starter.'),
  input: described(
    v.union([v.string(), v.pipe(v.array(DecisionItem), v.minLength(1), v.maxLength(4096), answeredCalls)]),
    'The text or the messages that all questions are about.',
  ),
  questions: v.pipe(v.array(DecisionQuestion), v.minLength(1), v.maxLength(400)),
  safety_identifier: unused,
  prompt_cache_key: unused,
  prompt_cache_options: unused,
  ...settings,
});
export type DecisionsRequest = v.InferOutput<typeof DecisionsRequest>;
