import { existsSync, readFileSync } from 'node:fs';
import { checkVersion, FINGERPRINT, VERSION, writeContract, writeGenerated } from './contract.ts';
import type { Language } from './language.ts';
import { CLIENTS, DIST } from './paths.ts';
import { run } from './run.ts';

const HOME = `${CLIENTS}typescript`;
const GENERATED = `${HOME}/src/generated`;

/**
 * Uses @hey-api/openapi-ts, which gets its own version of TypeScript. It writes plain types, and a union of tasks that
 * narrows on `type`.
 */
export const typescript: Language = {
  name: 'TypeScript',
  home: HOME,

  missing: () => null,

  async generate() {
    checkVersion(`${HOME}/package.json`, /"version": "(.*)"/);
    writeContract('typescript', {
      tags: ['decision service', 'decision formats', 'extractions'],
      enums: 'union',
      unions: 'keep',
      tag: 'keep',
    });
    if (!existsSync(`${HOME}/node_modules/.bin/openapi-ts`)) await run(HOME, ['npm', 'ci', '--no-audit', '--no-fund']);
    await run(HOME, ['npm', 'run', '--silent', 'generate']);
    openUnions(`${GENERATED}/types.gen.ts`);
    const constants = `export const CONTRACT_VERSION = '${VERSION}';\nexport const CONTRACT_FINGERPRINT = '${FINGERPRINT}';\n`;
    writeGenerated(`${GENERATED}/contract.ts`, `/** What this package was made from. */\n${constants}`);
  },

  async pack() {
    await run(HOME, ['npm', 'run', '--silent', 'build']);
    await run(HOME, ['npm', 'pack', '--silent', '--pack-destination', DIST]);
  },

  async test(urls) {
    await run(HOME, ['npm', 'run', '--silent', 'typecheck']);
    await run(HOME, ['npm', 'test', '--silent'], urls);
    await run(HOME, ['node', 'examples/refund.ts'], { ASSAY_URL: urls.ASSAY_STARTER_URL, ASSAY_API_KEY: 'demo' });
  },
};

/**
 * Rewrites `string` in open unions to `(string & {})`. Editors treat `'a' | 'b' | string` as `string`, but suggest the
 * known values of `'a' | 'b' | (string & {})`.
 */
function openUnions(file: string): void {
  writeGenerated(file, readFileSync(file, 'utf8').replaceAll("' | string;", "' | (string & {});"));
}
