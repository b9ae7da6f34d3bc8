import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, test } from 'vitest';
import { errorResponse } from '../../../handlers/error-response.ts';
import { AssayError } from '../../../lib/errors.ts';
import { hashSecret } from '../../../lib/keys.ts';
import { KeysStore } from '../keys-file.ts';
import { localKey, withoutServer } from './connection.ts';
import { successOf } from './request.ts';

it('gives commands that start at the same time the same key', async () => {
  const home = await mkdtemp(join(tmpdir(), 'assay-key-'));
  const made = await Promise.all(Array.from({ length: 8 }, () => localKey(home)));
  expect(new Set(made).size).toBe(1);
  expect(await new KeysStore(home).list()).toMatchObject([{ name: 'cli', sha256: await hashSecret(made[0]!) }]);
  expect(await readFile(join(home, 'cli-key'), 'utf8')).toBe(`${made[0]}\n`);
});

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
