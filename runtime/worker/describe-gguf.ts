import { readGguf } from '../checkpoint/gguf/read-gguf.ts';
import { ggufTokenizer } from '../checkpoint/gguf/tokenizer.ts';
import { floatTensor } from '../checkpoint/weight-source.ts';
import { Refused } from '../graph/config-keys.ts';
import { ggufConfig, ggufWeights } from '../graph/gguf.ts';
import { unusable } from '../onnx/unusable.ts';
import type { GgufTexts } from '../store/import-gguf.ts';

/**
 * Makes the configuration and the tokenizer of a model from its GGUF file. Throws `engine_failed` for a file that is
 * damaged, or whose model cannot run here.
 */
export function describeGguf(file: string): GgufTexts {
  try {
    const gguf = readGguf(file);
    const { tokenizer, config } = ggufTokenizer(gguf);
    // Types that are not read are refused here, and not at the compile.
    for (const stored of ggufWeights(gguf).values()) floatTensor(stored);
    return {
      'config.json': JSON.stringify(ggufConfig(gguf), null, 1),
      'tokenizer.json': JSON.stringify(tokenizer),
      'tokenizer_config.json': JSON.stringify(config, null, 1),
    };
  } catch (error) {
    throw error instanceof Refused ? unusable(error.message) : error;
  }
}
