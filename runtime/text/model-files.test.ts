import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fixture } from '../../tests/fixture.ts';
import { readModelText } from './model-files.ts';
import { loadTextModel } from './text-model.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'assay-text-'));
  cpSync(fixture('text/qwen'), dir, { recursive: true });
});
afterEach(() => rmSync(dir, { recursive: true }));

const write = (name: string, content: unknown) =>
  writeFileSync(join(dir, name), typeof content === 'string' ? content : JSON.stringify(content));

describe('readModelText', () => {
  it('takes the template from its own file before the configuration', async () => {
    write('tokenizer_config.json', { chat_template: 'in the configuration' });
    expect((await readModelText(dir)).template).toContain('enable_thinking');
    rmSync(join(dir, 'chat_template.jinja'));
    expect((await readModelText(dir)).template).toBe('in the configuration');
    write('tokenizer_config.json', {
      chat_template: [
        { name: 'tool_use', template: 't' },
        { name: 'default', template: 'd' },
      ],
    });
    expect(await readModelText(dir)).toMatchObject({ template: 'd', toolTemplate: 't' });
    rmSync(join(dir, 'tokenizer_config.json'));
    expect(await readModelText(dir)).toMatchObject({ template: null, toolTemplate: null });
  });

  it('takes the template for tools from the file beside that of the default one', async () => {
    write('tokenizer_config.json', { chat_template: [{ name: 'tool_use', template: 'in the configuration' }] });
    expect((await readModelText(dir)).toolTemplate).toBeNull();
    write('tool_use.jinja', 'in its file');
    expect((await readModelText(dir)).toolTemplate).toBe('in its file');
  });

  it('collects the end tokens of every configuration', async () => {
    write('config.json', { eos_token_id: 1, text_config: { eos_token_id: [2, 3] } });
    write('generation_config.json', { eos_token_id: [3, 4], temperature: 0.6, top_p: 0.95 });
    write('genai_config.json', { model: { eos_token_id: 5 } });
    const { endTokens, sampling } = await readModelText(dir);
    expect(endTokens).toEqual([1, 2, 3, 4, 5]);
    expect(sampling).toEqual({ temperature: 0.6, topP: 0.95 });
  });

  it.each([
    [{}, 1],
    [{ do_sample: true }, 1],
    [{ do_sample: true, temperature: 0.6 }, 0.6],
    [{ do_sample: false }, 0],
    [{ do_sample: false, temperature: 0.6 }, 0],
  ])('takes the sampling of the makers: %j is temperature %d', async (config, temperature) => {
    write('generation_config.json', config);
    expect((await readModelText(dir)).sampling.temperature).toBe(temperature);
  });
});

const tokenizerWith = (changes: object) => ({
  model: { type: 'BPE', vocab: { a: 0 }, merges: [] },
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: { type: 'ByteLevel' },
  ...changes,
});

describe('a vocabulary', () => {
  it('is no larger than the logits, whatever the files say', async () => {
    write('config.json', { vocab_size: 300_000_000 });
    const { size } = (await loadTextModel(dir)).vocabulary;
    expect(size).toBeLessThan(2_000);
    expect((await loadTextModel(dir, { vocabSize: size + 64 })).vocabulary.size).toBe(size + 64);
    const less = (await loadTextModel(dir, { vocabSize: 100 })).vocabulary;
    expect(less.size).toBe(100);
    expect([less.bytes(99), less.bytes(100)]).toEqual([expect.any(Uint8Array), null]);
  });
});

describe('files that cannot be used', () => {
  it.each([
    ['tokenizer.json', '{', /tokenizer\.json is damaged/u],
    ['tokenizer.json', { model: {} }, /tokenizer\.json is damaged/u],
    [
      'tokenizer.json',
      {
        model: { type: 'Nonsense' },
        added_tokens: [],
        normalizer: null,
        pre_tokenizer: null,
        post_processor: null,
        decoder: null,
      },
      /tokenizer cannot be used: .*Nonsense/u,
    ],
    [
      'tokenizer.json',
      {
        model: { type: 'BPE', vocab: { a: 0 }, merges: [] },
        added_tokens: [],
        normalizer: null,
        pre_tokenizer: null,
        post_processor: null,
        decoder: { type: 'CTC' },
      },
      /does not spell its tokens as bytes/u,
    ],
    ['config.json', { eos_token_id: -1 }, /config\.json is damaged/u],
    ['config.json', { eos_token_id: 300_000_000 }, /config\.json is damaged/u],
    ['config.json', '['.repeat(2_000_000), /config\.json nests too deep/u],
    ['config.json', ' '.repeat(5_000_000), /config\.json is too large/u],
    ['generation_config.json', `[${'0,'.repeat(300_000)}0]`, /generation_config\.json has too many members/u],
    ['tokenizer_config.json', `{"a":${'['.repeat(5_000_000)}`, /tokenizer_config\.json nests too deep/u],
    ['tokenizer.json', ' '.repeat(65 * 1024 * 1024), /tokenizer\.json is too large/u],
    ['tokenizer.json', `[${'0,'.repeat(4_000_001)}0]`, /tokenizer\.json has too many members/u],
    [
      'tokenizer.json',
      tokenizerWith({ model: { type: 'BPE', vocab: { a: 300_000_000 }, merges: [] } }),
      /a token id that is not valid/u,
    ],
    [
      'tokenizer.json',
      tokenizerWith({ model: { type: 'BPE', vocab: { a: '0' }, merges: [] } }),
      /a token id that is not valid/u,
    ],
    ['tokenizer.json', tokenizerWith({ added_tokens: [{ id: 300_000_000, content: 'a' }] }), /json is damaged/u],
    ['chat_template.jinja', '{% if %}', /chat template cannot be used/u],
    // The title omits the content, which may have 65 MiB.
  ])('%s, case %#', async (name, content, message) => {
    write(name, content);
    await expect(loadTextModel(dir)).rejects.toMatchObject({
      code: 'engine_failed',
      message: expect.stringMatching(message),
    });
  });

  it('no tokenizer at all', async () => {
    rmSync(join(dir, 'tokenizer.json'));
    await expect(loadTextModel(dir)).rejects.toMatchObject({
      message: expect.stringMatching(/has no tokenizer\.json/u),
    });
  });
});
