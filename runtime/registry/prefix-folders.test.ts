import { chmod, mkdir, mkdtemp, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { CompiledModel } from '../store/compiled-store.ts';
import { PrefixFolders } from './prefix-folders.ts';

const newFolder = () => mkdtemp(join(tmpdir(), 'assay-folders-'));

/** Describes a compiled model of many files, of which only the last one depends on `sha256`. */
function compiled(sha256: string): CompiledModel {
  const others = Array.from({ length: 20 }, (_, i) => ({ name: `file-${i}.onnx`, size: i, sha256: 'a'.repeat(64) }));
  const fingerprint = {
    ...{ source: 'b'.repeat(64), runtime: '1', compiler: 1, device: 'CPU' as const, dtype: null, precision: 'auto' },
    maxPromptLen: 8,
  };
  const files = [...others, { name: 'graph', size: 1, sha256 }];
  return {
    directory: '/x',
    key: 'k',
    record: { fingerprint, device: 'CPU', maxPromptLen: 8, precision: 'int8', files },
  };
}

test('each compiled model has a folder and a key of its own, which a later server finds again', async () => {
  const [home, dir] = [await newFolder(), join(await newFolder(), 'cache')];
  const open = () => PrefixFolders.open({ dir, maxBytes: 100 }, home);
  const [first, again] = [await open(), await open()];
  const one = await first.of(compiled('1'));
  expect(await again.of(compiled('1'))).toEqual(one);
  const other = await first.of(compiled('2'));
  expect(other.folder).not.toBe(one.folder);
  expect(other.key).not.toBe(one.key);
  expect(one).toMatchObject({ key: expect.stringMatching(/^[0-9a-f]{64}$/), maxBytes: 100 });
  for (const path of [dir, one.folder]) expect((await stat(path)).mode & 0o777).toBe(0o700);
  const key = join(home, 'saved-prefixes.key');
  expect((await stat(key)).mode & 0o777).toBe(0o600);
  expect(await readFile(key)).toHaveLength(32);
});

test('removes the folders of models that are not loaded, those used longest ago first, and nothing else', async () => {
  const [home, dir] = [await newFolder(), await newFolder()];
  for (const [name, age] of [
    ['1'.repeat(32), 3],
    ['2'.repeat(32), 2],
    ['3'.repeat(32), 1],
    ['mine', 9],
  ] as const) {
    await mkdir(join(dir, name));
    await writeFile(join(dir, name, 'x.prefix'), Buffer.alloc(40));
    await utimes(join(dir, name), 1e9 - age, 1e9 - age);
  }
  const { folder } = await (await PrefixFolders.open({ dir, maxBytes: 100 }, home)).of(compiled('1'));
  const left = ['2'.repeat(32), '3'.repeat(32), 'mine', folder.slice(dir.length + 1)];
  expect((await readdir(dir)).sort()).toEqual(left.sort());
});

test.skipIf(process.platform === 'win32')('refuses a folder or a key that other accounts may read', async () => {
  const [home, dir] = [await newFolder(), await newFolder()];
  const open = () => PrefixFolders.open({ dir, maxBytes: 100 }, home);
  await chmod(dir, 0o750);
  await expect(open()).rejects.toMatchObject({ code: 'invalid_value', message: expect.stringContaining('chmod 700') });
  await chmod(dir, 0o700);
  await chmod(join(home, 'saved-prefixes.key'), 0o644);
  await expect(open()).rejects.toMatchObject({ message: expect.stringContaining('chmod 600') });
});
