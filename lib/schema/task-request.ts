import * as v from 'valibot';
import { answerShape } from '../tasks/extract-shape.ts';
import { strictObject } from '../validation/objects.ts';
import { aliases, exactlyOne, lateRule } from '../validation/rules.ts';
import { Language } from './language.ts';
import { AudioInput, ImageInput, Message } from './message.ts';
import { evidence, maxError, unsure } from './question-fields.ts';
import { cacheSalt } from './sampling-fields.ts';
import { needsOptions, Tasks } from './task.ts';
import {
  answerSchema,
  choices,
  fields,
  guidance,
  instruction,
  keys,
  options,
  question,
  verbatim,
} from './task-fields.ts';
import { described, exactOptional, nonEmpty, whole } from './values.ts';
import { windows } from './windows.ts';

const model = described(nonEmpty, 'Id of the loaded model, such as assay/starter.');

export const ResponseFormat = strictObject({ type: v.literal('json_object') });

/** Fields of `RunTasksRequest`, `DecideRequest` and `ExtractRequest` (docs/interface.md, D-3, D-8 and D-9). */
const shared = {
  context: exactOptional(v.string(), 'Text that all tasks are about. Send either context or messages.'),
  messages: exactOptional(
    v.pipe(v.array(Message), v.minLength(1)),
    'Chat messages that all tasks are about. Send either context or messages.',
  ),
  images: exactOptional(
    v.array(ImageInput),
    'Images that all tasks are about. They precede the context or the last user message.',
  ),
  audio: exactOptional(
    v.array(AudioInput),
    'Recordings that all tasks are about. They precede the context or the last user message.',
  ),
  temperature: v.exactOptional(v.pipe(v.number(), v.minValue(0), v.maxValue(2)), 0),
  max_output_tokens: v.exactOptional(
    described(
      whole(1, 4096),
      'Limit of output tokens for all tasks together. If it is reached, finish_reason is length.',
    ),
    16,
  ),
  response_format: v.exactOptional(ResponseFormat, { type: 'json_object' }),
  target_language: v.exactOptional(Language),
  output_language: v.exactOptional(Language),
  cache_salt: cacheSalt,
  windows,
};

export const RunTasksRequest = v.pipe(
  strictObject({ model, ...shared, tasks: Tasks, max_error: maxError }),
  exactlyOne('context', 'messages'),
  aliases('target_language', 'output_language'),
);
export type RunTasksRequest = v.InferOutput<typeof RunTasksRequest>;

export const DecideRequest = v.pipe(
  strictObject({
    model,
    question,
    ...shared,
    options: v.exactOptional(options),
    choices: v.exactOptional(choices),
    unsure,
    evidence,
    max_error: maxError,
    instruction: v.exactOptional(guidance),
  }),
  exactlyOne('context', 'messages'),
  aliases('options', 'choices'),
  needsOptions(),
  aliases('target_language', 'output_language'),
);
export type DecideRequest = v.InferOutput<typeof DecideRequest>;

export const ExtractRequest = v.pipe(
  strictObject({
    model,
    instruction,
    ...shared,
    keys: v.exactOptional(keys),
    fields: v.exactOptional(fields),
    schema: v.exactOptional(answerSchema),
    verbatim: v.exactOptional(verbatim),
  }),
  exactlyOne('context', 'messages'),
  aliases('keys', 'fields'),
  lateRule(answerShape),
  aliases('target_language', 'output_language'),
);
export type ExtractRequest = v.InferOutput<typeof ExtractRequest>;
