import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { writeGenerated } from './contract.ts';
import { WORK } from './paths.ts';
import { run, saysOf } from './run.ts';

const VERSION = '7.17.0';
const SHA256 = '25d6bd8273dd2be99979d544b62ea43f0ce1975f1aa582678b5093d1e7fcfce8';
const JAR = `${WORK}/openapi-generator-cli-${VERSION}.jar`;

export interface Settings {
  generatorName: string;
  inputSpec: string;
  outputDir: string;
  templateDir?: string;
  additionalProperties: Record<string, string | boolean>;
  typeMappings?: Record<string, string>;
  schemaMappings?: Record<string, string>;
  modelNameMappings?: Record<string, string>;
  globalProperties: Record<string, string>;
}

/** Returns the reason why OpenAPI Generator cannot run on this machine, or null if it can. */
export function generatorMissing(): string | null {
  if (saysOf('java', '-version') === null) return 'needs Java 11 or newer for the generator';
  if (!existsSync(JAR) && saysOf('mvn', '--version') === null) return 'needs mvn to fetch the generator';
  return null;
}

/** Runs OpenAPI Generator, after removing the previous contents of `output`. */
export async function generateModels(language: string, settings: Settings, output: string): Promise<void> {
  await fetchJar();
  rmSync(output, { recursive: true, force: true });
  const config = `${WORK}/${language}.config.json`;
  writeGenerated(config, JSON.stringify(settings, null, 2));
  // JVM flags for a fast start. The output is ignored: unless the generator fails, it is only a request for donations.
  const quick = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Dlog.level=error'];
  await run(WORK, ['java', ...quick, '-jar', JAR, 'generate', '--config', config], {}, 'ignore');
}

async function fetchJar(): Promise<void> {
  if (!existsSync(JAR)) {
    const artifact = `org.openapitools:openapi-generator-cli:${VERSION}`;
    // Lets Maven choose its cache folder, because Java ignores HOME.
    await run(WORK, ['mvn', '-q', '-B', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${WORK}`]);
  }
  const found = createHash('sha256').update(readFileSync(JAR)).digest('hex');
  if (found !== SHA256) throw new Error(`${JAR} has the checksum ${found}, not ${SHA256}. Remove it and run again.`);
}
