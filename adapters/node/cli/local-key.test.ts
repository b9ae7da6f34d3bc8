import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { hashSecret } from '../../../lib/keys.ts';
import { KeysStore } from '../keys-file.ts';
import { localKey } from './local-key.ts';

it('gives commands that start at the same time the same key', async () => {
  const home = await mkdtemp(join(tmpdir(), 'assay-key-'));
  const made = await Promise.all(Array.from({ length: 8 }, () => localKey(home)));
  expect(new Set(made).size).toBe(1);
  expect(await new KeysStore(home).list()).toMatchObject([{ name: 'cli', sha256: await hashSecret(made[0]!) }]);
  expect(await readFile(join(home, 'cli-key'), 'utf8')).toBe(`${made[0]}\n`);
});
