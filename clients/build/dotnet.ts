import { rmSync } from 'node:fs';
import { checkVersion, FINGERPRINT, VERSION, writeContract, writeGenerated } from './contract.ts';
import { compileWithoutSdk, runWithoutSdk, withoutSdkMissing } from './dotnet-without-sdk.ts';
import type { Language, ServerUrls } from './language.ts';
import { generateModels, generatorMissing } from './openapi-generator.ts';
import { CLIENTS, DIST, ROOT } from './paths.ts';
import { run, saysOf } from './run.ts';

const HOME = `${CLIENTS}dotnet`;
const GENERATED = `${HOME}/generated`;

/**
 * Uses OpenAPI Generator with our own template, which writes plain classes for System.Text.Json. The generator's
 * `httpclient` templates need Newtonsoft.Json.
 */
export const dotnet: Language = {
  name: '.NET',
  home: HOME,

  missing: generatorMissing,
  notPacked: () => (hasSdk() ? null : 'needs dotnet of at least 8'),
  notTested: () => (hasSdk() ? null : withoutSdkMissing()),

  async generate() {
    checkVersion(`${HOME}/src/Assay.Client.csproj`, /<Version>(.*)<\/Version>/);
    const settings = {
      generatorName: 'csharp',
      inputSpec: writeContract('dotnet', {
        tags: ['decision service', 'decision formats'],
        enums: 'text',
        unions: 'any',
        tag: 'drop',
      }),
      outputDir: GENERATED,
      templateDir: `${HOME}/template`,
      additionalProperties: {
        library: 'httpclient',
        packageName: 'Assay.Client',
        modelPackage: '',
        targetFramework: 'net8.0',
        nullableReferenceTypes: true,
      },
      typeMappings: { number: 'double' },
      // System.Threading.Tasks already has a Task.
      modelNameMappings: { Task: 'AssayTask' },
      // MessageContent is handwritten. The form of an answer depends on the request, so it stays a JSON element.
      schemaMappings: {
        MessageContent: 'MessageContent',
        TaskResult: 'JsonElement',
        ExtractResult: 'JsonElement',
        TaskResults: 'IReadOnlyDictionary<string, JsonElement>',
      },
      globalProperties: { models: '', modelTests: 'false', modelDocs: 'false' },
    };
    await generateModels('dotnet', settings, GENERATED);
    const constants =
      `    /// <summary>The version of the contract.</summary>\n    public const string Version = "${VERSION}";\n\n` +
      `    /// <summary>SHA-256 of that contract.</summary>\n    public const string Fingerprint = "${FINGERPRINT}";\n`;
    writeGenerated(
      `${GENERATED}/Contract.cs`,
      `namespace Assay.Client;\n\n/// <summary>What this package was made from.</summary>\npublic static class Contract\n{\n${constants}}\n`,
    );
  },

  async pack() {
    await run(HOME, ['dotnet', 'pack', '--configuration', 'Release', '--output', DIST, 'src']);
  },

  async test(urls) {
    const env = { ...urls, ASSAY_CASES: `${CLIENTS}cases.json`, ASSAY_CONTRACT: `${ROOT}openapi.json` };
    const example = { ASSAY_URL: urls.ASSAY_STARTER_URL, ASSAY_API_KEY: 'demo' };
    if (!hasSdk()) return testWithoutSdk(env, example);
    await run(HOME, ['dotnet', 'run', '--project', 'tests'], env);
    await run(HOME, ['dotnet', 'run', '--project', 'examples'], example);
  },
};

function hasSdk(): boolean {
  return Number.parseInt(saysOf('dotnet', '--version') ?? '', 10) >= 8;
}

async function testWithoutSdk(env: ServerUrls, example: Record<string, string>): Promise<void> {
  const out = `${HOME}/bin/without-sdk`;
  rmSync(out, { recursive: true, force: true });
  const library = await compileWithoutSdk(
    `${out}/Assay.Client.dll`,
    ['src', 'generated'].map((one) => `${HOME}/${one}`),
  );
  const tests = await compileWithoutSdk(`${out}/Tests.exe`, [`${HOME}/tests`], [library]);
  const refund = await compileWithoutSdk(`${out}/Refund.exe`, [`${HOME}/examples`], [library]);
  await runWithoutSdk([tests], env);
  await runWithoutSdk([refund], example);
}
