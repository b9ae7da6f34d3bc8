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
  ['max_tokens', undefined],
  ['question'.repeat(9), undefined],
  ['__proto__', undefined],
])('%s → %s', (name, meant) => {
  const { code, message } = unknownField(name, FIELDS);
  expect(code).toBe('unknown_field');
  expect(message).toBe(
    meant === undefined
      ? 'is not a field of this request. Leave it out'
      : `is not a field of this request. Did you mean “${meant}”? Else leave it out`,
  );
});
