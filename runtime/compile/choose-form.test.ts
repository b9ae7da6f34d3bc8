import { expect, test } from 'vitest';
import { chooseForm, type MeasuredForm, measuredText, refuseUseless, UNUSABLE_ERROR } from './choose-form.ts';

const form = (name: MeasuredForm['form'], error: number | null, ms: number): MeasuredForm => ({
  form: name,
  error,
  ms,
});

test.each<[string, MeasuredForm[], string | undefined]>([
  ['the fastest', [form('int8', 0.1, 50), form('int4', 0.05, 90)], 'int8'],
  ['never one that is far off', [form('int8', 0.4, 50), form('int4', 0.05, 90)], 'int4'],
  ['of two as fast, the more accurate', [form('int8', 0.1, 50), form('int4', 0.05, 54)], 'int4'],
  ['nor one that gives no numbers', [form('int8', Number.NaN, 50), form('int4', 0.05, 90)], 'int4'],
  ['none where all are far off', [form('int8', 0.3, 50), form('int4', 0.5, 90)], undefined],
  ['none of the first two for SmolLM2-135M', [form('int8', 0.23, 47), form('int4', 1.6, 60)], undefined],
  [
    'blocks for it then',
    [form('int8', 0.23, 47), form('int4', 1.6, 60), form('int8-blocks', 0.088, 69), form('float', 0, 98)],
    'int8-blocks',
  ],
  ['floats where blocks are slow', [form('int8-blocks', 0.088, 400), form('float', 0, 98)], 'float'],
])('%s', (_, measured, chosen) => {
  expect(chooseForm(measured)?.form).toBe(chosen);
});

test('what was measured, for people', () => {
  const forms = [form('int8', 0.0304, 41), form('int8-blocks', UNUSABLE_ERROR, 0), form('int4', null, 67.25)];
  expect(measuredText(forms)).toBe(
    'int8 41.0 ms, logits off by 3.0%; int8-blocks fails on this CPU; int4 67.3 ms, accuracy not measured',
  );
});

test.each([
  ['int4' as const, 0.98, /cannot be used as int4: logits off by 98.0%, more than the 75%/],
  ['int4' as const, UNUSABLE_ERROR, /cannot be used as int4: fails on this CPU\. Use --precision auto/],
  ['int4' as const, 0.5, null],
  ['int8' as const, null, null],
])('%s off by %s, asked for: refused with %s', (name, error, message) => {
  const refuse = () => refuseUseless({ form: name, error });
  if (message) expect(refuse).toThrow(message);
  else expect(refuse).not.toThrow();
});

const shifted = (name: MeasuredForm['form'], shift: number, ms: number): MeasuredForm => ({
  ...form(name, 0.5, ms),
  shift,
});

test.each<[string, MeasuredForm[], string | undefined]>([
  ['is judged by its probabilities alone', [shifted('int8', 0.02, 10)], 'int8'],
  ['has no form where they move', [shifted('int8', 0.021, 10)], undefined],
  ['is as exact as half the time more allows', [shifted('int8', 0.01, 10), shifted('float', 0, 15)], 'float'],
  ['is not much slower for exactness', [shifted('int8', 0.01, 10), shifted('float', 0, 16)], 'int8'],
])('a decision model %s', (_, measured, chosen) => {
  expect(chooseForm(measured)?.form).toBe(chosen);
});
