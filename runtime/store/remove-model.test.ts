import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import { StorePaths } from './paths.ts';
import { removeModel } from './remove-model.ts';

const MODEL = parseModelId('acme/tiny');

/** Returns the paths of a model with a weight and a compiled file. Nothing in `readOnly` can be removed. */
async function store(readOnly: (paths: StorePaths) => string): Promise<StorePaths> {
  const base = await fs.mkdtemp(join(tmpdir(), 'assay-remove-'));
  const paths: StorePaths = new (class extends StorePaths {
    override async remove(target: string, counted?: Set<number>): Promise<number> {
      if (!target.startsWith(readOnly(this))) return super.remove(target, counted);
      throw Object.assign(new Error(`EROFS: read-only file system, unlink '${target}'`), {
        code: 'EROFS',
        syscall: 'unlink',
      });
    }
  })({ hubCache: join(base, 'hub'), assayHome: join(base, 'assay'), bundled: null });
  for (const directory of [paths.snapshots(MODEL), paths.compiledModel(MODEL)]) {
    await fs.mkdir(directory, { recursive: true });
    await fs.writeFile(join(directory, 'file'), 'x');
  }
  return paths;
}

it.each<[string, (paths: StorePaths) => string]>([
  ['HF_HUB_CACHE', (paths) => paths.roots.hubCache],
  ['ASSAY_HOME', (paths) => paths.roots.assayHome],
])('says that %s cannot be written to', async (variable, readOnly) => {
  await expect(removeModel(await store(readOnly), MODEL, { compiledOnly: false })).rejects.toMatchObject({
    code: 'internal_error',
    message: `${variable} cannot be written to (EROFS). Set it to a directory that you can write to.`,
  });
});
