import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { checkVersion, FINGERPRINT, VERSION, writeContract, writeGenerated } from './contract.ts';
import type { Language } from './language.ts';
import { CLIENTS, DIST } from './paths.ts';
import { run, saysOf } from './run.ts';

const HOME = `${CLIENTS}python`;
const BIN = `${HOME}/.venv/bin`;
const WHEEL = `assay_client-${VERSION}-py3-none-any.whl`;

/**
 * Uses datamodel-code-generator, whose unions and literals look handwritten. OpenAPI Generator would wrap each union in
 * a class.
 */
export const python: Language = {
  name: 'Python',
  home: HOME,

  missing() {
    const said = saysOf('python3', '-c', 'import sys, venv, ensurepip; print(sys.version_info >= (3, 10))');
    return said === 'True' ? null : 'needs python3 of at least 3.10 with venv';
  },

  async generate() {
    checkVersion(`${HOME}/pyproject.toml`, /^version = "(.*)"$/m);
    const input = writeContract('python', {
      tags: ['decision service', 'decision formats', 'extractions', 'model server'],
      enums: 'union',
      unions: 'keep',
      tag: 'default',
    });
    await install('requirements-build.txt');
    await run(HOME, [`${BIN}/datamodel-codegen`, '--input', input, '--output', 'src/assay/models.py']);
    const constants = `CONTRACT_VERSION = "${VERSION}"\nCONTRACT_FINGERPRINT = "${FINGERPRINT}"\n`;
    writeGenerated(`${HOME}/src/assay/contract.py`, `"""What this package was made from."""\n\n${constants}`);
  },

  async pack() {
    await run(HOME, [
      `${BIN}/pip`,
      'wheel',
      '--quiet',
      '--no-deps',
      '--no-build-isolation',
      '--wheel-dir',
      'dist',
      '.',
    ]);
    copyFileSync(`${HOME}/dist/${WHEEL}`, `${DIST}/${WHEEL}`);
  },

  async test(urls) {
    await install('requirements-test.txt');
    await run(HOME, [`${BIN}/pip`, 'install', '--quiet', '--no-deps', '--force-reinstall', `${DIST}/${WHEEL}`]);
    await run(HOME, [`${BIN}/python`, '-m', 'mypy', 'src', 'examples']);
    await run(HOME, [`${BIN}/python`, '-m', 'pytest', '--quiet'], urls);
    await run(HOME, [`${BIN}/python`, 'examples/refund.py'], {
      ASSAY_URL: urls.ASSAY_STARTER_URL,
      ASSAY_API_KEY: 'demo',
    });
  },
};

/** Installs the packages of a requirements file into the virtual environment, if the file has changed. */
async function install(list: string): Promise<void> {
  const wanted = readFileSync(`${HOME}/${list}`, 'utf8');
  const installed = `${HOME}/.venv/${list}`;
  if (existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return;
  if (!existsSync(BIN)) await run(HOME, ['python3', '-m', 'venv', '.venv']);
  await run(HOME, [`${BIN}/pip`, 'install', '--quiet', '--requirement', list]);
  writeGenerated(installed, wanted);
}
