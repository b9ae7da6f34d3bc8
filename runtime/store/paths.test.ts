import { mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AssayError } from '../../lib/errors.ts';
import { asModelId, type ModelId, parseModelId } from '../../lib/model-id.ts';
import { StorePaths } from './paths.ts';
import { idOfRepositoryFolder, isSafeRepositoryPath } from './safe-names.ts';

const HASH = 'a'.repeat(64);
const COMMIT = 'b'.repeat(40);
const paths = new StorePaths({ hubCache: '/r/hub', assayHome: '/r/assay', bundled: '/r/models' });

/** Generates texts from parts that could lead out of a directory. */
const hostile = fc
  .array(
    fc.constantFrom(
      '..',
      '.',
      '/',
      '\\',
      '\0',
      '%2e%2e',
      '%2f',
      '~',
      '--',
      'C:',
      'con',
      'a',
      ' ',
      '\n',
      '…',
      '‮',
      '-',
      '$HOME',
      '*',
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

/** Returns functions that build each path from a model id and a name from outside. */
const places = (id: ModelId, text: string): (() => string)[] => [
  () => paths.repository(id),
  () => paths.ref(id, text),
  () => paths.blob(id, text),
  () => paths.partialJournal(id, text),
  () => paths.snapshot(id, text),
  () => paths.snapshotFile(id, COMMIT, text),
  () => paths.compiled(id, text),
  () => paths.staging(id),
  () => paths.compileLock(id),
  () => paths.blobLock(id, text),
  () => paths.modelLock(id),
  () => paths.bundledModel(id) ?? '/r/models/none',
];

describe('names from outside', () => {
  it('500 hostile ids and names lead nowhere outside the roots', () => {
    fc.assert(
      fc.property(fc.oneof(hostile, fc.constantFrom('a/b', 'assay/x', 'a--b/c')), hostile, (idText, name) => {
        // The second id has skipped the parser: the paths must be safe although its type claims that it was parsed.
        for (const id of [asModelId(idText), idText as ModelId]) {
          if (id === null) continue;
          for (const place of places(id, name)) {
            let result: string;
            try {
              result = place();
            } catch (error) {
              expect(error).toBeInstanceOf(AssayError);
              continue;
            }
            expect(result).toMatch(/^\/r\/(hub|assay|models)\//);
            expect(result.split(sep)).not.toContain('..');
            expect(result).not.toContain('\0');
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['config.json', true],
    ['onnx/model_q4f16.onnx_data', true],
    ['cpu_and_mobile/cpu-int4-rtn-block-32-acc-level-4/model.onnx', true],
    ['../x', false],
    ['a/../b', false],
    ['/etc/passwd', false],
    ['a//b', false],
    ['a\\b', false],
    ['C:x', false],
    ['a\0b', false],
    ['nul.txt', false],
    ['a.', false],
    ['', false],
    [`${'a/'.repeat(20)}b`, false],
    ['x'.repeat(256), false],
  ])('%j as a file of a repository: %s', (file, safe) => {
    expect(isSafeRepositoryPath(file)).toBe(safe);
  });

  it('an id with the separator of the cache in it has no place', () => {
    expect(() => paths.repository('a--b/c' as ModelId)).toThrow(/No hub has a model with this name/);
  });

  it.each([
    ['models--a--b', 'a/b'],
    ['models--a--b--c', null],
    ['datasets--a--b', null],
    ['models--gpt2', null],
    ['.locks', null],
  ])('folder %s is %s', (folder, id) => {
    expect(idOfRepositoryFolder(folder)).toBe(id);
  });
});

it('a directory that cannot be created names the variable that sets another', async () => {
  const file = join(await mkdtemp(join(tmpdir(), 'assay-paths-')), 'file');
  await writeFile(file, '');
  const store = new StorePaths({ hubCache: join(file, 'hub'), assayHome: join(file, 'home'), bundled: null });
  const id = parseModelId('acme/tiny');
  await expect(store.makeDirectory(store.compiledModel(id))).rejects.toMatchObject({
    code: 'internal_error',
    message: 'ASSAY_HOME cannot be written to (ENOTDIR). Set it to a directory that you can write to.',
  });
  await expect(store.makeDirectory(store.blobs(id))).rejects.toMatchObject({
    code: 'internal_error',
    message: 'HF_HUB_CACHE cannot be written to (ENOTDIR). Set it to a directory that you can write to.',
  });
});

describe('links', () => {
  const setUp = async (): Promise<{ outside: string; hub: string; store: StorePaths; id: ModelId }> => {
    const base = await mkdtemp(join(tmpdir(), 'assay-paths-'));
    const [outside, hub] = [join(base, 'outside'), join(base, 'hub')];
    for (const directory of [outside, hub]) await mkdir(directory);
    await writeFile(join(outside, 'precious'), 'precious');
    const store = new StorePaths({ hubCache: hub, assayHome: join(base, 'assay'), bundled: null });
    return { outside, hub, store, id: parseModelId('acme/tiny') };
  };

  it('out of a root are not followed for reading or making directories', async () => {
    const { outside, store, id } = await setUp();
    await store.makeDirectory(store.repository(id));
    await symlink(outside, store.snapshots(id));
    expect(await store.real(store.snapshots(id))).toBeNull();
    expect(await store.real(join(store.snapshots(id), 'precious'))).toBeNull();
    await expect(store.makeDirectory(store.snapshot(id, COMMIT))).rejects.toThrow(
      /^models--acme--tiny\/snapshots in HF_HUB_CACHE is a link that leads out of it/,
    );
    expect(await readdir(outside)).toEqual(['precious']);
  });

  it('are removed, and what they lead to stays', async () => {
    const { outside, store, id } = await setUp();
    await store.makeDirectory(store.blobs(id));
    await writeFile(store.blob(id, HASH), 'x'.repeat(100));
    await symlink(outside, join(store.repository(id), 'away'));
    expect(await store.remove(store.repository(id))).toBe(100);
    expect(await store.real(store.repository(id))).toBeNull();
    expect(await readFile(join(outside, 'precious'), 'utf8')).toBe('precious');
  });

  it('as the repository itself: nothing behind it is removed', async () => {
    const { outside, hub, store, id } = await setUp();
    await symlink(outside, join(hub, 'models--acme--tiny'));
    await store.remove(store.blobs(id));
    await store.remove(join(store.repository(id), 'precious'));
    await store.remove(store.repository(id));
    expect(await readdir(outside)).toEqual(['precious']);
  });
});
