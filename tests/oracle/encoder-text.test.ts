import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createEncoderTokenizer, type EncoderTokenizer } from '../../runtime/encoder/encoder-tokenizer.ts';
import type { TokenizerJson } from '../../runtime/text/model-files.ts';
import { fixture } from '../fixture.ts';

/** Creates the tokenizer of a fixture with another definition. */
function changed(family: string, change: (json: TokenizerJson) => TokenizerJson): EncoderTokenizer {
  const folder = fixture(`encoders/${family}`);
  const read = (name: string) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8'));
  const tokenizerConfig = read('tokenizer_config.json');
  return createEncoderTokenizer({ tokenizer: change(read('tokenizer.json')), tokenizerConfig });
}

it('gives a word of a Unigram model the same tokens everywhere, where two splits are equally probable', () => {
  const [space, one, two] = [4, 5, 6];
  // In 64 bits, what is in front of a word decides whether -5.8 and -4.8 are more than -4.8 and -5.8.
  const scores = [['\u2581', -3] as const, ['a', -5.8] as const, ['aa', -4.8] as const];
  const { encode } = changed('nli-deberta', (json) => {
    const { vocab } = json.model as unknown as { vocab: unknown[] };
    return { ...json, model: { ...json.model, vocab: [...vocab.slice(0, space), ...scores] } };
  });
  expect(encode('aaa')).toEqual([space, two, one]);
  expect(encode('aaa '.repeat(300))).toEqual(Array(300).fill([space, two, one]).flat());
});
