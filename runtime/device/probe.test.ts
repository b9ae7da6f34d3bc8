import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { STARVED_PROGRAM } from '../process/starved-program.fixture.ts';
import { probeProvider } from './probe.ts';

const folder = mkdtempSync(join(tmpdir(), 'assay-probe-'));

it.runIf(process.platform === 'linux').each([
  ['answers on a starved machine', STARVED_PROGRAM, { works: true }],
  ['never answers', 'setInterval(() => {}, 1000)', { works: false, reason: 'it did not answer for 1 s' }],
  ['ends', 'process.exit(3)', { works: false, reason: "the driver's process ended with code 3" }],
])('reports the result of a probe process that %s', async (name, program, expected) => {
  const file = join(folder, `${name.replaceAll(' ', '-')}.cjs`);
  writeFileSync(file, program);
  expect(await probeProvider('cpu', { entry: pathToFileURL(file), limitMs: 1_000 })).toEqual(expected);
});
