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

export const name = v.pipe(taskName, v.description('Key of the answer in results. Unique within the request.'));
export const id = v.pipe(taskName, v.description('Earlier name of name, accepted in its place.'));
export const question = v.pipe(text, v.description('Question to answer.'));
export const guidance = v.pipe(v.string(), v.description('Extra guidance.'));
export const instruction = v.pipe(text, v.description('What to extract.'));

const eachOnce = distinct('invalid_value', (item: string) => item);
const optionList = v.pipe(v.array(v.pipe(text, v.maxCodePoints(1024))), v.minLength(1), v.maxLength(256), eachOnce);
const keyList = v.pipe(v.array(text), v.minLength(1), v.maxLength(128), eachOnce);

export const options = v.pipe(optionList, v.description('Allowed answers, all different.'));
export const choices = v.pipe(optionList, v.description('Another name of options.'));
export const keys = v.pipe(keyList, v.description('Field names of the answer, all different, in this order.'));
export const fields = v.pipe(keyList, v.description('Another name of keys.'));

export const answerSchema = v.pipe(
  jsonObject,
  v.description(
    'Shape of the answer: JSON Schema 2020-12, or the shorthand {"vendor":"string","lines":[{"qty":"integer"}]}.',
  ),
);
