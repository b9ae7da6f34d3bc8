import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type LinkOperations, linkFile } from './link-file.ts';

const failing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code, syscall: 'symlink' }));

async function linked(changes: Partial<LinkOperations>): Promise<string> {
  const folder = await fs.mkdtemp(join(tmpdir(), 'assay-link-'));
  const [file, link] = [join(folder, 'file'), join(folder, 'link')];
  await fs.writeFile(file, 'content');
  await linkFile(file, link, 'file', { ...fs, ...changes });
  expect(await fs.readFile(link, 'utf8')).toBe('content');
  expect((await fs.readdir(folder)).sort()).toEqual(['file', 'link']);
  if ((await fs.lstat(link)).isSymbolicLink()) return `link to ${await fs.readlink(link)}`;
  return (await fs.stat(link)).nlink === 2 ? 'hard link' : 'copy';
}

it.each<[string, Partial<LinkOperations>, string]>([
  ['a disk with links', {}, 'link to file'],
  ['Windows without the privilege', { symlink: failing('EPERM') }, 'hard link'],
  ['exFAT', { symlink: failing('EPERM'), link: failing('EPERM') }, 'copy'],
  ['exFAT through FUSE', { symlink: failing('ENOSYS'), link: failing('EPERM') }, 'copy'],
  ['a network disk without links', { symlink: failing('EOPNOTSUPP'), link: failing('EOPNOTSUPP') }, 'copy'],
  ['two disks, the second without links', { symlink: failing('EPERM'), link: failing('EXDEV') }, 'copy'],
])('on %s', async (_, changes, expected) => {
  expect(await linked(changes)).toBe(expected);
});

it('throws any other error', async () => {
  await expect(linked({ symlink: failing('ENOSPC') })).rejects.toMatchObject({ code: 'ENOSPC' });
});
