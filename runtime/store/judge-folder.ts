import { join } from 'node:path';
import { type ArchitectureVerdict, judgeArchitecture } from './architecture.ts';
import { CONFIG_BOUNDS, readBoundedJson } from './bounded-file.ts';

/** Judges whether the model whose files are in the folder `dir` can run here. */
export async function judgeFolder(dir: string): Promise<ArchitectureVerdict> {
  const read = (name: string) => readBoundedJson(join(dir, name), CONFIG_BOUNDS);
  const [config, genai, processor] = await Promise.all([
    read('config.json'),
    read('genai_config.json'),
    read('processor_config.json'),
  ]);
  return judgeArchitecture({ config, genai, processor });
}
