import { copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { checkVersion, FINGERPRINT, VERSION, writeContract, writeGenerated } from './contract.ts';
import type { Language } from './language.ts';
import { generateModels, generatorMissing } from './openapi-generator.ts';
import { CLIENTS, DIST } from './paths.ts';
import { run, saysOf } from './run.ts';

const HOME = `${CLIENTS}rust`;
const MODELS = `${HOME}/src/models`;
const CRATE = `assay-client-${VERSION}.crate`;

/** Uses OpenAPI Generator's models: plain structs, and an enum for tasks that serde distinguishes by their `type`. */
export const rust: Language = {
  name: 'Rust',
  home: HOME,

  missing: () => (saysOf('cargo', '--version') === null ? 'needs cargo' : generatorMissing()),

  async generate() {
    checkVersion(`${HOME}/Cargo.toml`, /^version = "(.*)"$/m);
    const settings = {
      generatorName: 'rust',
      inputSpec: writeContract('rust', {
        tags: ['decision service', 'decision formats'],
        enums: 'text',
        unions: 'any',
        tag: 'drop',
      }),
      outputDir: HOME,
      additionalProperties: { packageName: 'assay', avoidBoxedModels: true },
      globalProperties: { models: '', modelTests: 'false', modelDocs: 'false', supportingFiles: 'mod.rs' },
    };
    await generateModels('rust', settings, `${HOME}/src/models`);
    // The generator also writes this folder, because `mod.rs` of the models and of the APIs have the same name.
    rmSync(`${HOME}/src/apis`, { recursive: true, force: true });
    nameParts(`${MODELS}/message_content.rs`);
    for (const file of readdirSync(MODELS)) plainOptions(`${MODELS}/${file}`);
    const constants =
      `/// The version of the contract that this package was made from.\npub const CONTRACT_VERSION: &str = "${VERSION}";\n` +
      `/// SHA-256 of that contract.\npub const CONTRACT_FINGERPRINT: &str =\n    "${FINGERPRINT}";\n`;
    writeGenerated(`${HOME}/src/contract.rs`, constants);
  },

  async pack() {
    // The tests compile the same sources, so there is nothing to build.
    await run(HOME, ['cargo', 'package', '--quiet', '--allow-dirty', '--no-verify', '--locked']);
    copyFileSync(`${HOME}/target/package/${CRATE}`, `${DIST}/${CRATE}`);
  },

  async test(urls) {
    // Compiles without TLS, which no test needs and which takes most of the compile time.
    const plain = ['--quiet', '--locked', '--no-default-features'];
    await run(HOME, ['cargo', 'test', ...plain], urls);
    const env = { ASSAY_URL: urls.ASSAY_STARTER_URL, ASSAY_API_KEY: 'demo' };
    await run(HOME, ['cargo', 'run', ...plain, '--example', 'refund'], env);
  },
};

/** Renames two variants of an enum. The generator names them after their types, and one of these names is invalid. */
function nameParts(file: string): void {
  const text = readFileSync(file, 'utf8');
  const named = text.replace('ArrayVecmodels::ContentPart(', 'Parts(').replace('  String(String)', '  Text(String)');
  writeGenerated(file, named.replace('Self::String(', 'Self::Text('));
}

/** Unwraps optional values of any type. The generator wraps them twice, with a crate that nothing else needs. */
function plainOptions(file: string): void {
  const text = readFileSync(file, 'utf8');
  const plain = text.replaceAll(', default, with = "::serde_with::rust::double_option"', '');
  writeGenerated(file, plain.replaceAll('Option<Option<serde_json::Value>>', 'Option<serde_json::Value>'));
}
