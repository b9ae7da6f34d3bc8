import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { hashFile } from './digest.ts';

const folder = mkdtempSync(join(tmpdir(), 'assay-digest-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = join(folder, 'file');
writeFileSync(file, 'hello\n');

test.each([
  // `printf 'hello\n' | git hash-object --stdin` and `| sha256sum`
  ['git', 40, 'ce013625030ba8dba906f756967f9e9ca394464a'],
  ['sha256', 64, '5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03'],
])('hashes a file as %s', async (_, digits, hash) => {
  expect(await hashFile(file, 6, '0'.repeat(digits))).toBe(hash);
});

test('throws the reason of the signal', async () => {
  const reason = new Error('the server is shutting down');
  await expect(hashFile(file, 6, '0'.repeat(64), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});
