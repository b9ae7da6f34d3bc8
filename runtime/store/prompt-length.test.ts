import { expect, test } from 'vitest';
import { choosePromptLength } from './prompt-length.ts';

test.each([
  [undefined, 131_072, null, 'CPU', 32_768],
  [undefined, 40_960, null, 'CPU', 32_768],
  [undefined, 8192, null, 'CPU', 8192],
  [undefined, 2048, null, 'CPU', 2048],
  [undefined, null, null, 'CPU', 4096],
  [undefined, 131_072, 4096, 'CPU', 4096],
  [undefined, 131_072, null, 'NPU', 4096],
  [undefined, 131_072, null, 'GPU', 4096],
  [undefined, 2048, null, 'NPU', 2048],
  [8192, 131_072, 4096, 'CPU', 8192],
  [8192, 131_072, null, 'NPU', 8192],
  [16, 2048, null, 'CPU', 16],
  [2048, 2048, null, 'CPU', 2048],
  [4096, null, null, 'CPU', 4096],
] as const)('for max_prompt_len %s, a context of %s and short tables of %s on the %s, compiles for %s', (...row) => {
  const [wanted, context, short, device, length] = row;
  expect(choosePromptLength(wanted, { context, short }, device)).toBe(length);
});

test.each([
  [15, 2048, "max_prompt_len must be a whole number from 16 to 2048, the model's context length."],
  [2049, 2048, "max_prompt_len must be a whole number from 16 to 2048, the model's context length."],
  [17.5, 2048, "max_prompt_len must be a whole number from 16 to 2048, the model's context length."],
  [4097, null, 'from 16 to 4096, because the model does not state its context length.'],
])('refuses max_prompt_len %s for a context of %s', (wanted, context, message) => {
  expect(() => choosePromptLength(wanted, { context, short: null })).toThrow(message);
});
