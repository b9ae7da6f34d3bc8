import { expect, it } from 'vitest';
import { withoutSecrets } from './without-secrets.ts';

it.each([
  ['HF_TOKEN', false],
  ['OPENAI_API_KEY', false],
  ['aws_secret_access', false],
  ['DB_PASSWORD', false],
  ['GOOGLE_APPLICATION_CREDENTIALS', false],
  ['NODE_OPTIONS', false],
  ['PATH', true],
  ['NODE_OPTIONS_OF_MINE', true],
  ['LD_LIBRARY_PATH', true],
])('of the variable %s it passes on: %s', (name, kept) => {
  expect(withoutSecrets({ [name]: 'value' })).toEqual(kept ? { [name]: 'value' } : {});
});
