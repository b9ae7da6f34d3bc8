import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { linkTargets, programFolders } from './isolation.ts';

it('names code only, not the folder of a checkout with its keys and settings', () => {
  const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
  const folders = programFolders();
  for (const path of ['.', 'assay-api-key', '.dev.vars', '.git/config']) {
    const file = join(root, path);
    expect(folders.filter((one) => file === one || file.startsWith(`${one}/`))).toEqual([]);
  }
  expect(folders).toContain(join(root, 'runtime'));
});

it('finds the targets of links in subfolders, and skips links to missing files', async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'assay-links-')));
  onTestFinished(() => rm(root, { recursive: true }));
  const blob = join(root, 'blob');
  const model = join(root, 'model');
  await writeFile(blob, 'weights');
  await mkdir(join(model, 'onnx'), { recursive: true });
  await writeFile(join(model, 'config.json'), '{}');
  await symlink('../../blob', join(model, 'onnx/model.onnx'));
  await symlink(join(root, 'deleted'), join(model, 'tokenizer.json'));
  expect(await linkTargets(model)).toEqual([blob]);
  expect(await linkTargets(join(root, 'missing'))).toEqual([]);
});
