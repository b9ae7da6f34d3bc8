import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SCRIPT = fileURLToPath(new URL('other-systems.js', import.meta.url));
const ALL = ['darwin', 'linux', 'win32'];

/** Runs the script of a package in `own`, and returns the systems whose libraries are left in `modules`. */
function left(own: string, modules: string, env: Record<string, string>, systems = ALL): string[] {
  const place = mkdtempSync(join(tmpdir(), 'assay-systems-'));
  const libraries = join(place, modules, 'onnxruntime-node/bin/napi-v6');
  for (const system of systems) {
    mkdirSync(join(libraries, system, 'x64'), { recursive: true });
    writeFileSync(join(libraries, system, 'x64', 'library'), '');
  }
  cpSync(SCRIPT, join(place, own, 'release/other-systems.mjs'));
  execFileSync(process.execPath, [join(place, own, 'release/other-systems.mjs')], { env });
  return readdirSync(libraries).sort();
}

const installed = { npm_lifecycle_event: 'postinstall' };
test.each([
  ['a checkout', '.', 'node_modules', installed, [process.platform]],
  ['for another system', '.', 'node_modules', { ...installed, npm_config_os: 'win32' }, ['win32']],
  [
    'a global install',
    'node_modules/assay',
    'node_modules',
    { ...installed, npm_config_global: 'true' },
    [process.platform],
  ],
  ['its own modules', 'node_modules/assay', 'node_modules/assay/node_modules', { npm_config_os: 'linux' }, ['linux']],
  ['a dependency of a project', 'node_modules/assay', 'node_modules', installed, ALL],
  ['a system without libraries', '.', 'node_modules', { ...installed, npm_config_os: 'aix' }, ALL],
])('%s', (_, own, modules, env, systems) => {
  expect(left(own, modules, env)).toEqual(systems);
});
