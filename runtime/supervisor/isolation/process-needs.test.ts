import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { linkTargets } from './process-needs.ts';

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
