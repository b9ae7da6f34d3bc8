import { join } from 'node:path';
import { type ArchitectureVerdict, judgeArchitecture } from './architecture.ts';
import { CONFIG_BOUNDS, readBoundedJson } from './bounded-file.ts';
import { GENAI_CONFIG, GENAI_PROCESSORS } from './genai-config.ts';

/**
 * Judges whether the model whose files are in the folder `dir` can run here, and which media it reads. Throws
 * `engine_failed` for a configuration file that is too large or not JSON.
 */
export async function judgeFolder(dir: string): Promise<ArchitectureVerdict> {
  const read = (name: string) => readBoundedJson(join(dir, name), CONFIG_BOUNDS);
  const [config, genai, ...processors] = await Promise.all(
    ['config.json', GENAI_CONFIG, ...GENAI_PROCESSORS].map(read),
  );
  return judgeArchitecture({ config, genai, processor: processors.find((found) => found !== undefined) });
}
