import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { TARGETS } from './targets.ts';

/** The short form of `npm run fuzz`: the whole corpus, then some seconds of search. */

const SECONDS = 2;

test.each(Object.keys(TARGETS))('%s breaks no promise', { timeout: 120_000 }, async (name) => {
  const args = [join(import.meta.dirname, 'fuzz.ts'), name, String(SECONDS), '--seed', '1'];
  // Code from the compile cache has no positions of blocks, and the search counts blocks.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toContain(`${name}: `);
});
