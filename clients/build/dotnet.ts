import { copyFileSync } from 'node:fs';
import { FINGERPRINT, VERSION, writeContract, writeGenerated } from './contract.ts';
import type { Language } from './language.ts';
import { generateModels, generatorMissing } from './openapi-generator.ts';
import { CLIENTS, DIST } from './paths.ts';
import { run, saysOf } from './run.ts';

const GENERATED = `${CLIENTS}dotnet/generated`;
const NUPKG = `Assay.Client.${VERSION}.nupkg`;

/** OpenAPI Generator's whole library, as there is no .NET here to try a thinner one with. Packed where there is a `dotnet`. */
export const dotnet: Language = {
  name: '.NET',

  missing: generatorMissing,
  notBuilt: () => (saysOf('dotnet', '--version') === null ? 'needs dotnet of at least 8' : null),

  async generate() {
    const settings = {
      generatorName: 'csharp',
      inputSpec: writeContract('dotnet', { tags: ['decision service'], enums: 'text', tag: 'keep' }),
      outputDir: GENERATED,
      additionalProperties: {
        library: 'generichost',
        packageName: 'Assay.Client',
        packageVersion: VERSION,
        packageDescription: `Client of Assay, made from the contract with SHA-256 ${FINGERPRINT}`,
        licenseId: 'Apache-2.0',
        targetFramework: 'net8.0',
        nullableReferenceTypes: true,
      },
      // System.Threading.Tasks has a Task already.
      modelNameMappings: { Task: 'AssayTask' },
      globalProperties: { apiTests: 'false', modelTests: 'false' },
    };
    await generateModels('dotnet', settings, GENERATED);
    writeGenerated(`${GENERATED}/contract.sha256`, `${FINGERPRINT}\n`);
  },

  async pack() {
    await run(GENERATED, ['dotnet', 'pack', '--configuration', 'Release', '--output', 'out', 'src/Assay.Client']);
    copyFileSync(`${GENERATED}/out/${NUPKG}`, `${DIST}/${NUPKG}`);
  },
};
