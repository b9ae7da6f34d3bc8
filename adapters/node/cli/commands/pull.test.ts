import { expect, test } from 'vitest';
import { AssayError } from '../../../../lib/errors.ts';
import { withServersHub } from './pull.ts';

const gated = new AssayError('model_not_allowed', 'org/model is gated.');

test('a token of this shell is said not to reach the server', () => {
  expect(withServersHub(gated, { HF_TOKEN: 'hf_x' })).toMatchObject({
    code: 'model_not_allowed',
    message: 'org/model is gated. The server downloads, so HF_TOKEN counts only in the shell that starts it.',
  });
});

test.each([
  ['no variable is set', gated, {}],
  ['the error is not of the hub', new AssayError('disk_full', 'Full.'), { HF_TOKEN: 'hf_x' }],
  ['the error is none of Assay', new Error('x'), { HF_TOKEN: 'hf_x' }],
])('the error stays as it is if %s', (_, error, env) => {
  expect(withServersHub(error, env)).toBe(error);
});
