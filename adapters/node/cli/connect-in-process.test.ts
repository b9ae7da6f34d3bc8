import { expect, test } from 'vitest';
import { errorResponse } from '../../../handlers/error-response.ts';
import { AssayError } from '../../../lib/errors.ts';
import { withoutServer } from './connect-in-process.ts';
import { successOf } from './request.ts';

test('an internal error names ASSAY_DEBUG instead of a log that this process does not keep', async () => {
  const response = errorResponse(new Error('a fault'), 'models');
  const error = await successOf(response).catch((thrown: unknown) => thrown);
  expect(withoutServer(error)).toMatchObject({
    code: 'internal_error',
    message: expect.stringContaining('ASSAY_DEBUG=1'),
  });
});

test('every other error keeps its message', () => {
  const error = new AssayError('disk_full', 'The disk is full.');
  expect(withoutServer(error)).toBe(error);
});
