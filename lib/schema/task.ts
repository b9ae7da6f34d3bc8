import * as v from 'valibot';
import { answerShape } from '../tasks/extract-shape.ts';
import { strictObject, variant } from '../validation/objects.ts';
import { aliases, distinct, lateRule, rule } from '../validation/rules.ts';
import { Language } from './language.ts';
import { evidence, selectable, selection, unsure } from './question-fields.ts';
import {
  answerSchema,
  choices,
  fields,
  guidance,
  id,
  instruction,
  keys,
  multiOptions,
  name,
  options,
  question,
  verbatim,
} from './task-fields.ts';
import { described } from './values.ts';

/** Returns the rule that a task needs `name` or its earlier alias `id`. The contract lists only `name` as required. */
function named<TInput extends { name?: string; id?: string }>() {
  return rule<TInput>((task) =>
    task.name === undefined && task.id === undefined
      ? { code: 'missing_field', at: ['name'], message: 'is required' }
      : null,
  );
}

/** Returns the rule that `unsure` and `evidence` need options. */
export function needsOptions<
  TInput extends { options?: unknown; choices?: unknown; unsure?: unknown; evidence?: unknown },
>() {
  return rule<TInput>(({ options, choices, unsure, evidence }) =>
    (unsure || evidence) && !options && !choices
      ? { code: 'missing_field', at: ['options'], message: `is required with ${unsure ? 'unsure' : 'evidence'}` }
      : null,
  );
}

export const DecideTask = described(
  v.pipe(
    strictObject({
      type: v.literal('decide'),
      name: v.exactOptional(name),
      question,
      options: v.exactOptional(options),
      choices: v.exactOptional(choices),
      unsure,
      evidence,
      instruction: v.exactOptional(guidance),
      target_language: v.exactOptional(Language),
      id: v.exactOptional(id),
    }),
    named(),
    aliases('name', 'id'),
    aliases('options', 'choices'),
    needsOptions(),
    v.metadata({ required: ['type', 'name', 'question'] }),
  ),
  'Choose one of the options; without options, give a short answer.',
);
export type DecideTask = v.InferOutput<typeof DecideTask>;

export const MultiTask = described(
  v.pipe(
    strictObject({
      type: v.literal('multi'),
      name: v.exactOptional(name),
      question,
      options: multiOptions,
      ...selection,
      id: v.exactOptional(id),
    }),
    named(),
    aliases('name', 'id'),
    selectable(({ options }) => options.length),
    v.metadata({ required: ['type', 'name', 'question', 'options'] }),
  ),
  'Choose all of the options that apply. Each is asked about on its own.',
);
export type MultiTask = v.InferOutput<typeof MultiTask>;

export const ExtractTask = described(
  v.pipe(
    strictObject({
      type: v.literal('extract'),
      name: v.exactOptional(name),
      instruction,
      keys: v.exactOptional(keys),
      fields: v.exactOptional(fields),
      schema: v.exactOptional(answerSchema),
      verbatim: v.exactOptional(verbatim),
      target_language: v.exactOptional(Language),
      id: v.exactOptional(id),
    }),
    named(),
    aliases('name', 'id'),
    aliases('keys', 'fields'),
    lateRule(answerShape),
    v.metadata({ required: ['type', 'name', 'instruction'] }),
  ),
  'Extract an object from the context.',
);
export type ExtractTask = v.InferOutput<typeof ExtractTask>;

export const Task = variant('type', [DecideTask, MultiTask, ExtractTask]);
export type Task = v.InferOutput<typeof Task>;

const differentNames = distinct<Task>(
  'duplicate_task_name',
  (task) => task.name ?? task.id,
  (task) => [task.name === undefined ? 'id' : 'name'],
);

export const Tasks = v.pipe(v.array(Task), v.minLength(1), v.maxLength(256), differentNames);
