import { expect, test } from 'vitest';
import { choosePromptLength } from './prompt-length.ts';

test.each([
  [undefined, 32_768, 4096],
  [undefined, 2048, 2048],
  [undefined, null, 4096],
  [16, 2048, 16],
  [2048, 2048, 2048],
  [4096, null, 4096],
])('for max_prompt_len %s and a context of %s, compiles for %s', (wanted, context, length) => {
  expect(choosePromptLength(wanted, context)).toBe(length);
});

test.each([
  [15, 2048, "max_prompt_len must be a whole number from 16 to 2048, the model's context length."],
  [2049, 2048, "max_prompt_len must be a whole number from 16 to 2048, the model's context length."],
  [17.5, 2048, "max_prompt_len must be a whole number from 16 to 2048, the model's context length."],
  [4097, null, 'from 16 to 4096, because the model does not state its context length.'],
])('refuses max_prompt_len %s for a context of %s', (wanted, context, message) => {
  expect(() => choosePromptLength(wanted, context)).toThrow(message);
});
