import * as v from 'valibot';
import { distinct } from '../validation/rules.ts';
import { jsonObject } from './json-object.ts';
import { described, nonEmpty } from './values.ts';

/**
 * Matches a task's name: 1 to 64 letters, digits, `_`, `.` or `-`, not beginning with `.` or `-` (docs/interface.md,
 * D-4).
 */
export const TASK_NAME = /^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,63}$/;

const text = nonEmpty;
const taskName = v.pipe(v.string(), v.regex(TASK_NAME));

export const name = described(
  taskName,
  'Name of the task, unique within the request. It is the key of the answer in results.',
);
export const id = described(taskName, 'Deprecated alias of name.');
export const question = described(text, 'The question to answer.');
export const guidance = described(v.string(), 'Further guidance for the model.');
export const instruction = described(text, 'What to extract.');

const eachOnce = distinct('invalid_value', (item: string) => item);
const optionList = v.pipe(v.array(v.pipe(text, v.maxCodePoints(1024))), v.minLength(1), v.maxLength(256), eachOnce);
const keyList = v.pipe(v.array(text), v.minLength(1), v.maxLength(128), eachOnce);

export const options = described(optionList, 'The allowed answers, all different. The answer is exactly one of them.');
export const multiOptions = described(optionList, 'The options, all different, any number of which may apply.');
export const choices = described(optionList, 'Alias of options.');
export const keys = described(
  keyList,
  'Names of the fields to extract, all different. The answer has them in this order.',
);
export const fields = described(keyList, 'Alias of keys.');

export const verbatim = described(
  v.boolean(),
  'Whether texts are quoted from the input instead of written freely. Default: false.',
);

export const answerSchema = described(
  jsonObject,
  'Schema of the answer: JSON Schema 2020-12, or the shorthand form, such as {"vendor":"string","lines":[{"qty":"integer"}]}.',
);
