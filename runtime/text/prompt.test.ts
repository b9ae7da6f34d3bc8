import { describe, expect, it } from 'vitest';
import { atOnce } from '../../lib/at-once.ts';
import { fixture } from '../../tests/fixture.ts';
import { encodeChat } from './prompt.ts';
import { loadTextModel } from './text-model.ts';

const model = (family: string) => loadTextModel(fixture(`text/${family}`));

describe('encodeChat', () => {
  const messages = [{ role: 'user' as const, parts: [{ type: 'text' as const, text: 'Hi' }] }];

  it('tells whether the prompt opens a reasoning block', async () => {
    expect(atOnce(encodeChat(await model('reasoner'), messages)).thinking).toBe(true);
    expect(atOnce(encodeChat(await model('reasoner'), messages, { thinking: false })).thinking).toBe(false);
    expect(atOnce(encodeChat(await model('qwen'), messages)).thinking).toBe(false);
  });

  it('adds the begin token once', async () => {
    const llama = await model('llama3');
    const begin = llama.tokenizer.begin;
    expect(atOnce(encodeChat(llama, messages)).ids.filter((id) => id === begin)).toEqual([begin]);
  });

  it('refuses what the model cannot read', async () => {
    const parts = [
      {
        type: 'image' as const,
        source: { type: 'url' as const, url: 'https://a/b.png' },
        param: 'messages[0].content[0]',
      },
    ];
    const smollm = await model('smollm');
    expect(() => atOnce(encodeChat(smollm, [{ role: 'user', parts }]))).toThrow(
      expect.objectContaining({ code: 'unsupported_modality', param: 'messages[0].content[0]' }),
    );
  });

  it.each([['word '.repeat(100)], ['x'.repeat(5_000_000)]])(
    'refuses a prompt that is too long: %.20s…',
    async (text) => {
      const short = await loadTextModel(fixture('text/qwen'), { mostTokens: 4 * 64 });
      const long = [{ role: 'user' as const, parts: [{ type: 'text' as const, text }] }];
      expect(() => atOnce(encodeChat(short, long, { limit: 64 }))).toThrow(
        expect.objectContaining({ code: 'input_too_long' }),
      );
    },
  );
});
