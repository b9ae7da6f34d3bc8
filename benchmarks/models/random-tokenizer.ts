import { linkSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { byteAlphabet } from './byte-alphabet.ts';

/**
 * Adds a tokenizer to a compiled random model. It is a byte-level tokenizer with `vocabSize` tokens but no merges, so
 * each byte of a prompt is one token. Returns a new folder beside the model's, which has hard links to the model's
 * files.
 */
export function withTokenizer(compiled: string, vocabSize: number): string {
  const folder = mkdtempSync(join(dirname(compiled), 'with-tokenizer-'));
  for (const file of readdirSync(compiled)) linkSync(join(compiled, file), join(folder, file));
  const vocab: Record<string, number> = {};
  byteAlphabet().forEach((character, byte) => {
    vocab[character] = byte;
  });
  for (let id = 256; id < vocabSize; id++) vocab[`w${id.toString(36)}`] = id;
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  const tokenizer = {
    version: '1.0',
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: { type: 'BPE', vocab, merges: [] },
  };
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(folder, 'tokenizer_config.json'), '{}');
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ vocab_size: vocabSize }));
  return folder;
}
