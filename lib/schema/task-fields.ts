import * as v from 'valibot';
import { distinct } from '../validation/rules.ts';
import { jsonObject } from './json-object.ts';

/**
 * Matches a task's name: 1 to 64 letters, digits, `_`, `.` or `-`, not beginning with `.` or `-` (docs/interface.md,
 * D-4).
 */
export const TASK_NAME = /^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,63}$/;

const text = v.pipe(v.string(), v.minLength(1));
const taskName = v.pipe(v.string(), v.regex(TASK_NAME));

export const name = v.pipe(
  taskName,
  v.description('Name of the task, unique within the request. It is the key of the answer in results.'),
);
export const id = v.pipe(taskName, v.description('Deprecated alias of name.'));
export const question = v.pipe(text, v.description('The question to answer.'));
export const guidance = v.pipe(v.string(), v.description('Further guidance for the model.'));
export const instruction = v.pipe(text, v.description('What to extract.'));

const eachOnce = distinct('invalid_value', (item: string) => item);
const optionList = v.pipe(v.array(v.pipe(text, v.maxCodePoints(1024))), v.minLength(1), v.maxLength(256), eachOnce);
const keyList = v.pipe(v.array(text), v.minLength(1), v.maxLength(128), eachOnce);

export const options = v.pipe(
  optionList,
  v.description('The allowed answers, all different. The answer is exactly one of them.'),
);
export const multiOptions = v.pipe(
  optionList,
  v.description('The options, all different, any number of which may apply.'),
);
export const choices = v.pipe(optionList, v.description('Alias of options.'));
export const keys = v.pipe(
  keyList,
  v.description('Names of the fields to extract, all different. The answer has them in this order.'),
);
export const fields = v.pipe(keyList, v.description('Alias of keys.'));

export const verbatim = v.pipe(
  v.boolean(),
  v.description('Whether texts are quoted from the input instead of written freely. Default: false.'),
);

export const answerSchema = v.pipe(
  jsonObject,
  v.description(
    'Schema of the answer: JSON Schema 2020-12, or the shorthand form, such as {"vendor":"string","lines":[{"qty":"integer"}]}.',
  ),
);
