import { expect, it } from 'vitest';
import { diskError } from './disk-error.ts';

const systemError = (code: string, syscall = 'write') => Object.assign(new Error(code), { code, syscall });

it.each<[Error, string, RegExp]>([
  [systemError('ENOSPC'), 'disk_full', /^The disk of ASSAY_HOME is full/],
  [systemError('EFBIG'), 'disk_full', /^The disk of ASSAY_HOME does not take files this large/],
  [systemError('EROFS'), 'internal_error', /^ASSAY_HOME cannot be written to \(EROFS\)/],
  [systemError('ENOENT', 'mkdir'), 'internal_error', /^ASSAY_HOME cannot be written to \(ENOENT\)/],
  [systemError('EIO'), 'internal_error', /^A file of ASSAY_HOME could not be used \(EIO\)/],
])('says what to do about %s', (error, code, message) => {
  expect(diskError(error, 'ASSAY_HOME')).toMatchObject({ code, message: expect.stringMatching(message) });
});

it('leaves other errors alone', () => {
  const error = new TypeError('fetch failed');
  expect(diskError(error, 'ASSAY_HOME')).toBe(error);
});
