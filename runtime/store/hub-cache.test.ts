import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import { arrivalOf, findLocalModel, type LinkOperations, linkFile } from './hub-cache.ts';
import { StorePaths } from './paths.ts';

const MODEL = parseModelId('acme/tiny');
const [COMMIT, OTHER] = ['a'.repeat(40), 'b'.repeat(40)];

/**
 * Returns the paths of a cache with one model. The file or folder `vanishing` is removed right after its existence was
 * checked, as another tool could do.
 */
async function cache(vanishing?: (paths: StorePaths) => string): Promise<StorePaths> {
  const hubCache = await fs.mkdtemp(join(tmpdir(), 'assay-cache-'));
  const paths: StorePaths = new (class extends StorePaths {
    override async real(target: string): Promise<string | null> {
      const real = await super.real(target);
      if (target === vanishing?.(this)) await fs.rm(target, { recursive: true });
      return real;
    }
  })({ hubCache, assayHome: join(hubCache, 'assay'), bundled: null });
  for (const path of ['config.json', 'tokenizer.json', 'onnx/model_q4.onnx']) {
    const file = paths.snapshotFile(MODEL, COMMIT, path);
    await fs.mkdir(dirname(file), { recursive: true });
    await fs.writeFile(file, '{}');
  }
  return paths;
}

const find = (paths: StorePaths) => findLocalModel(paths, MODEL, { device: 'CPU' });

it('omits a commit that another tool removes while the model is read', async () => {
  const paths = await cache();
  // A link to nothing: a listing names it, but it cannot be read.
  await fs.symlink('nowhere', paths.snapshot(MODEL, OTHER));
  expect(await find(paths)).toMatchObject({ commit: COMMIT });
});

it.each<[string, (place: string) => Promise<void>]>([
  ['a file', (place) => fs.writeFile(place, '')],
  ['a link to itself', (place) => fs.symlink(place, place)],
])('omits a commit that is %s', async (_, put) => {
  const paths = await cache();
  await put(paths.snapshot(MODEL, OTHER));
  expect(await find(paths)).toMatchObject({ commit: COMMIT });
  await fs.rm(paths.snapshot(MODEL, COMMIT), { recursive: true });
  expect(await find(paths)).toBeNull();
});

// Root may read everything.
it.skipIf(process.getuid?.() === 0)('says that a model may not be read', async () => {
  const paths = await cache();
  await fs.chmod(paths.snapshot(MODEL, COMMIT), 0);
  await expect(find(paths)).rejects.toMatchObject({
    code: 'internal_error',
    message: expect.stringContaining('The files of acme/tiny in HF_HUB_CACHE cannot be read (EACCES)'),
  });
});

it.each<[string, (paths: StorePaths) => string]>([
  ['snapshots', (paths) => paths.snapshots(MODEL)],
  ['only snapshot', (paths) => paths.snapshot(MODEL, COMMIT)],
])('a model whose %s another tool removes while it is looked at is not there', async (_, vanishing) => {
  expect(await find(await cache(vanishing))).toBeNull();
});

it('returns when a model was stored, and null for one that is not here', async () => {
  const before = Math.floor(Date.now() / 1000) - 1;
  const paths = await cache();
  const arrival = await arrivalOf(paths, MODEL);
  expect(arrival).toBeGreaterThanOrEqual(before);
  expect(arrival).toBeLessThanOrEqual(Date.now() / 1000);
  expect(await arrivalOf(paths, parseModelId('acme/other'))).toBeNull();
});

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
