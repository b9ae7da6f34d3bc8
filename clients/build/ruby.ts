import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { checkVersion, FINGERPRINT, VERSION, writeContract, writeGenerated } from './contract.ts';
import type { Language } from './language.ts';
import { generateModels, generatorMissing } from './openapi-generator.ts';
import { CLIENTS, DIST, WORK } from './paths.ts';
import { run, saysOf } from './run.ts';

const HOME = `${CLIENTS}ruby`;
const GEM = `${DIST}/assay-client-${VERSION}.gem`;
const MODELS = `${HOME}/lib/assay/models`;
const INSTALLED = `${WORK}/gems`;

/** Uses OpenAPI Generator's models, in which each kind of task is a class of its own. */
export const ruby: Language = {
  name: 'Ruby',
  home: HOME,

  missing: () =>
    saysOf('gem', '--version') === null ? 'needs ruby with gem (Debian: apt-get install ruby)' : generatorMissing(),

  async generate() {
    checkVersion(`${HOME}/assay-client.gemspec`, /spec\.version = '(.*)'/);
    const settings = {
      generatorName: 'ruby',
      inputSpec: writeContract('ruby', {
        tags: ['decision service', 'decision formats'],
        enums: 'text',
        unions: 'any',
        tag: 'default',
      }),
      outputDir: HOME,
      additionalProperties: {
        gemName: 'assay',
        moduleName: 'Assay',
        library: 'faraday',
        hideGenerationTimestamp: true,
      },
      // The generated code can read a map of objects, but not a map of maps.
      schemaMappings: { TaskResults: 'Object' },
      globalProperties: { models: '', modelTests: 'false', modelDocs: 'false', supportingFiles: 'api_model_base.rb' },
    };
    await generateModels('ruby', settings, MODELS);
    for (const file of readdirSync(MODELS)) readStringKeys(`${MODELS}/${file}`);
    const constants =
      `  # The version of the contract that this package was made from, and its SHA-256.\n  CONTRACT_VERSION = '${VERSION}'\n` +
      `  CONTRACT_FINGERPRINT = '${FINGERPRINT}'\n`;
    writeGenerated(`${HOME}/lib/assay/contract.rb`, `# frozen_string_literal: true\n\nmodule Assay\n${constants}end\n`);
  },

  async pack() {
    await run(HOME, ['gem', 'build', '--quiet', '--output', GEM, 'assay-client.gemspec']);
  },

  async test(urls) {
    rmSync(INSTALLED, { recursive: true, force: true });
    await run(HOME, ['gem', 'install', '--quiet', '--local', '--no-document', '--install-dir', INSTALLED, GEM]);
    const found = { GEM_PATH: `${INSTALLED}:${saysOf('gem', 'env', 'gempath')}` };
    const files = ['cases', 'media', 'package'].flatMap((name) => ['-r', `./test/${name}_test.rb`]);
    await run(HOME, ['ruby', '-W0', ...files, '-e', ''], { ...urls, ...found });
    const env = { ...found, ASSAY_URL: urls.ASSAY_STARTER_URL, ASSAY_API_KEY: 'demo' };
    await run(HOME, ['ruby', 'examples/refund.rb'], env);
  },
};

/**
 * Changes a generated union to read its discriminator by a string key. Parsed JSON has string keys, but the generator
 * expects symbols.
 */
function readStringKeys(file: string): void {
  const text = readFileSync(file, 'utf8');
  const bySymbol = 'data[openapi_discriminator_name]\n';
  // A variant that this version does not know is returned unchanged.
  const read = text
    .replace(bySymbol, 'data[openapi_discriminator_name.to_s]\n')
    .replace('return nil unless klass\n', 'return data unless klass\n');
  writeGenerated(file, read);
}
