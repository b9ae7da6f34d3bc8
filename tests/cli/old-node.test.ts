import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

const BIN = new URL('../../adapters/node/bin.ts', import.meta.url);

/** Runs `assay --version` in a process whose Node claims to be `version`. */
function run(version: string): Promise<{ code: number; out: string; err: string }> {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, fileURLToPath(BIN), '--version'];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }));
  });
}

it.each(['18.20.8', '20.20.2', '22.12.0'])('on Node %s the command says which one it needs', async (version) => {
  const { code, out, err } = await run(version);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(`assay needs Node 22.13 or newer; this is Node ${version}.`);
});

it.each(['22.13.0', '24.0.0'])('on Node %s it runs', async (version) => {
  expect(await run(version)).toMatchObject({ code: 0, err: '' });
});

it('checks for what package.json requires, before it imports anything', async () => {
  expect(manifest.engines.node).toBe('>=22.13');
  expect(await readFile(BIN, 'utf8')).not.toMatch(/^import\s+[^(]/m);
});
