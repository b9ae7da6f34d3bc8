import { expect, test } from 'vitest';
import { unknownField } from './unknown-field.ts';

const FIELDS = ['name', 'type', 'question', 'options', 'max_output_tokens', 'top_logprobs', 'url'];

test.each<[string, string | undefined]>([
  ['qestion', 'question'],
  ['Question', 'question'],
  ['option', 'options'],
  ['maxOutputTokens', 'max_output_tokens'],
  ['max-output-token', 'max_output_tokens'],
  ['nmae', undefined],
  ['name_', 'name'],
  ['toplogprob', 'top_logprobs'],
  ['u', undefined],
  ['', undefined],
  ['stream', undefined],
  ['question'.repeat(9), undefined],
  ['__proto__', undefined],
])('%s → %s', (name, meant) => {
  const { code, message } = unknownField(name, FIELDS);
  expect(code).toBe('unknown_field');
  expect(message).toBe(
    meant === undefined
      ? 'is not a field of this request. Remove it'
      : `is not a field of this request. Did you mean “${meant}”? If not, remove it`,
  );
});

test.each([
  ['reason', FIELDS, 'To get a reason, ask for it in instruction, such as "Give a short reason"'],
  ['reason', ['tasks'], 'Remove it'],
  ['max_tokens', FIELDS, 'Send max_output_tokens'],
])('%s among %j: %s', (name, known, advice) => {
  expect(unknownField(name, known).message).toBe(`is not a field of this request. ${advice}`);
});
