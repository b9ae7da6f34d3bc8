import { copyFileSync } from 'node:fs';
import { checkVersion, FINGERPRINT, VERSION, writeContract, writeGenerated } from './contract.ts';
import type { Language } from './language.ts';
import { generateModels, generatorMissing } from './openapi-generator.ts';
import { CLIENTS, DIST } from './paths.ts';
import { run, saysOf } from './run.ts';

const HOME = `${CLIENTS}java`;
const GENERATED = `${HOME}/generated`;
const MAVEN = ['mvn', '--batch-mode', '--quiet', '--threads', '1'];
const JAR = `assay-client-${VERSION}.jar`;

/**
 * Uses OpenAPI Generator's models. Tasks are classes that implement one interface; Jackson distinguishes them by their
 * `type` member.
 */
export const java: Language = {
  name: 'Java',
  home: HOME,

  missing: () => (saysOf('mvn', '--version') === null ? 'needs mvn and a JDK of at least 17' : generatorMissing()),

  async generate() {
    checkVersion(`${HOME}/pom.xml`, /<artifactId>assay-client<\/artifactId>\s*<version>(.*)<\/version>/);
    const settings = {
      generatorName: 'java',
      inputSpec: writeContract('java', {
        tags: ['decision service', 'decision formats'],
        enums: 'text',
        unions: 'any',
        tag: 'default',
        saysOpen: true,
      }),
      outputDir: GENERATED,
      additionalProperties: {
        library: 'restclient',
        modelPackage: 'dev.assay.model',
        annotationLibrary: 'none',
        documentationProvider: 'none',
        serializationLibrary: 'jackson',
        useJakartaEe: true,
        useOneOfInterfaces: true,
        openApiNullable: false,
        disallowAdditionalPropertiesIfNotPresent: false,
        containerDefaultToNull: true,
        hideGenerationTimestamp: true,
      },
      typeMappings: { number: 'Double' },
      // The content is a string or a list of parts; Java has no union of the two.
      schemaMappings: { MessageContent: 'Object' },
      globalProperties: { models: '', modelTests: 'false', modelDocs: 'false' },
    };
    await generateModels('java', settings, `${GENERATED}/src`);
    const constants =
      `  /** The version of the contract that this package was made from. */\n  public static final String VERSION = "${VERSION}";\n` +
      `  /** SHA-256 of that contract. */\n  public static final String FINGERPRINT = "${FINGERPRINT}";\n`;
    writeGenerated(
      `${GENERATED}/src/main/java/dev/assay/Contract.java`,
      `package dev.assay;\n\n/** What this package was made from. */\npublic final class Contract {\n${constants}\n  private Contract() {}\n}\n`,
    );
  },

  async pack() {
    await run(HOME, [...MAVEN, 'package', '-DskipTests']);
    copyFileSync(`${HOME}/target/${JAR}`, `${DIST}/${JAR}`);
  },

  async test(urls) {
    const env = { ...urls, ASSAY_URL: urls.ASSAY_STARTER_URL, ASSAY_API_KEY: 'demo' };
    await run(HOME, [...MAVEN, 'verify', 'exec:java'], env);
  },
};
