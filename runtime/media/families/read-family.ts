import { join } from 'node:path';
import * as v from 'valibot';
import { AssayError } from '../../../lib/errors.ts';
import { CONFIG_BOUNDS, readBoundedJson } from '../../store/bounded-file.ts';
import { GenaiConfig, genaiFamily } from '../../store/genai-config.ts';
import { isMediaFamily, type MediaFamilyName } from '../../store/media-models.ts';
import type { MediaFamily } from './family.ts';
import { Gemma4Config, gemma4 } from './gemma4.ts';
import { genaiFiles } from './genai-files.ts';
import { Idefics3Config, idefics3 } from './idefics3.ts';
import { QwenVlConfig, qwenVl } from './qwen-vl.ts';
import { UltravoxConfig, ultravox } from './ultravox.ts';
import { VoxtralConfig, voxtral } from './voxtral.ts';

type Reader = (files: unknown, maxPromptLen: number) => MediaFamily;

const readQwenVl =
  ({ deepstack }: { deepstack: boolean }): Reader =>
  (files, maxPromptLen) =>
    qwenVl(v.parse(QwenVlConfig, files), { maxPromptLen, deepstack });

/** Functions that check a model's configuration files and create its family, by `model_type` in `config.json`. */
const FAMILIES: Readonly<Record<MediaFamilyName, Reader>> = {
  gemma4: (files) => gemma4(v.parse(Gemma4Config, files)),
  idefics3: (files) => idefics3(v.parse(Idefics3Config, files)),
  smolvlm: (files) => idefics3(v.parse(Idefics3Config, files)),
  qwen2_vl: readQwenVl({ deepstack: false }),
  qwen2_5_vl: readQwenVl({ deepstack: false }),
  qwen3_vl: readQwenVl({ deepstack: true }),
  ultravox: (files) => ultravox(v.parse(UltravoxConfig, files)),
  voxtral: (files) => voxtral(v.parse(VoxtralConfig, files)),
};

/**
 * Returns the family by which the model in the folder `dir` reads images or audio; null if its family is unknown, and
 * the model thus reads only text.
 *
 * @param maxPromptLen maximum tokens of a prompt
 * @throws AssayError `engine_failed` for a known family whose configuration is damaged or incomplete, and for a
 *   configuration file that is too large or not JSON
 */
export async function readMediaFamily(dir: string, maxPromptLen: number): Promise<MediaFamily | null> {
  const read = (name: string) => readBoundedJson(join(dir, name), CONFIG_BOUNDS);
  const [config, preprocessor, processor, genai, steps] = await Promise.all([
    read('config.json'),
    read('preprocessor_config.json'),
    read('processor_config.json'),
    read('genai_config.json'),
    read('image_processor.json'),
  ]);
  const built = v.safeParse(GenaiConfig, genai);
  const type = (built.success ? genaiFamily(built.output, steps ?? processor) : null) ?? modelType(config);
  if (!isMediaFamily(type)) return null;
  const family = FAMILIES[type];
  const files = built.success ? genaiFiles(built.output, steps ?? processor) : null;
  try {
    return family(
      files ?? { config, preprocessor: preprocessor ?? imageProcessor(processor), processor },
      maxPromptLen,
    );
  } catch (cause) {
    const named = files
      ? 'genai_config.json, image_processor.json or processor_config.json'
      : 'config.json, preprocessor_config.json or processor_config.json';
    const message = `The model's ${named} does not say how ${type} reads images or audio. Download the model again.`;
    throw new AssayError('engine_failed', message, { cause });
  }
}

function modelType(config: unknown): string {
  const named = v.safeParse(v.looseObject({ model_type: v.string() }), config);
  return named.success ? named.output.model_type : '';
}

/**
 * Returns the image processor's part of `processor_config.json`, where transformers 5 writes what was
 * `preprocessor_config.json` before; undefined if it has none.
 */
function imageProcessor(processor: unknown): unknown {
  const read = v.safeParse(v.looseObject({ image_processor: v.unknown() }), processor);
  return read.success ? read.output.image_processor : undefined;
}
