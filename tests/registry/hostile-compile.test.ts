import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import { bundleTiny, hostOver, ScriptedEngine } from './machine.ts';

const TINY = parseModelId('assay/tiny');

it.each<[string, (target: string, outside: string) => Promise<void>]>([
  ['a link where the server writes', (target, outside) => fs.symlink(outside, join(target, 'tokenizer.json'))],
  ['a second name of another file', (target, outside) => fs.link(outside, join(target, 'tokenizer.json'))],
  ['a link that would be published', (target, outside) => fs.symlink(outside, join(target, 'other.bin'))],
  ['a folder', (target) => fs.mkdir(join(target, 'folder')).then(() => undefined)],
])('a compile that leaves %s is refused, and the file outside stays as it was', async (_, leave) => {
  const base = await fs.mkdtemp(join(tmpdir(), 'assay-hostile-'));
  await bundleTiny(base);
  const outside = join(base, 'outside');
  await fs.writeFile(outside, 'mine');
  const engine = new ScriptedEngine();
  const { compile } = engine;
  engine.compile = async (spec, call) => {
    const report = await compile(spec, call);
    await leave(spec.target, outside);
    return report;
  };
  const { host, download } = hostOver(base, engine);
  await expect(download(TINY, { allowDownload: false })).rejects.toMatchObject({
    code: 'engine_failed',
    message: expect.stringContaining('links, folders or special files'),
  });
  expect(await fs.readFile(outside, 'utf8')).toBe('mine');
  expect((await host.listModels())[0]?.status).toBe('available');
});
