import { readFileSync } from 'node:fs';
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atOnce } from '../../../lib/at-once.ts';
import { fixture, readFixture } from '../../../tests/fixture.ts';
import { readModelText } from '../model-files.ts';
import { encodeSegments } from '../segment.ts';
import { createTextModel } from '../text-model.ts';
import { exactChunks, openLibrary, RecentEncodings, textChunks } from './tokenizer.ts';

const FAMILIES = ['qwen', 'smollm', 'reasoner', 'llama3', 'gemma', 'llama2', 'mistral', 'base'];

interface Golden {
  texts: { text: string; ids: number[] }[];
  chats: { messages: { role: 'user' | 'assistant' | 'system'; content: string }[]; prompt: string; ids: number[] }[];
}

describe.each(FAMILIES)('%s', async (family) => {
  const golden: Golden = JSON.parse(readFixture(`text/${family}/golden.json`));
  const model = createTextModel(await readModelText(fixture(`text/${family}`)));

  it.each(golden.texts)('encodes $text as the Rust tokenizers library does', ({ text, ids }) => {
    expect(model.tokenizer.encodeUser(text, false)).toEqual(ids);
  });

  it.each(golden.texts)('gives the bytes that $text was made of', ({ text }) => {
    const ids = model.tokenizer.encodeUser(text, true);
    const bytes = ids.flatMap((id) => [...(model.vocabulary.bytes(id) ?? [])]);
    // Some tokenizers normalize the text first.
    expect([text, text.normalize('NFC')]).toContain(new TextDecoder().decode(Uint8Array.from(bytes)));
  });

  it.each(golden.chats)('renders and encodes $messages as transformers does', ({ messages, prompt, ids }) => {
    const segments = atOnce(model.template.render(messages));
    expect(segments.map(({ text }) => text).join('')).toBe(prompt);
    expect(atOnce(encodeSegments(model, segments))).toEqual(ids);
  });

  it('encodes a long text in pieces as it would in one', async () => {
    const words = readFileSync(new URL('../../../LICENSE', import.meta.url), 'utf8').slice(0, 3_000);
    const data = '12.5, -3 [4, 5] {"a": 1} (6 , 7) 1 000 é à 👋 ! ? '.repeat(20);
    const text = `${words}\nSeñor 日本語、テキスト 👋🏽 don't\n\n\tx = 1;\n${data}`.repeat(12);
    expect(text.length).toBeGreaterThan(2 * 16_384);
    const { tokenizer, tokenizerConfig } = await readModelText(fixture(`text/${family}`));
    const whole = new LibraryTokenizer(tokenizer, tokenizerConfig).encode(text, { add_special_tokens: false }).ids;
    expect(model.tokenizer.encodeUser(text, false)).toEqual(whole);
  });

  it('encodes a long text without spaces in pieces, where a pattern says that words end before signs', async () => {
    const text = '日本語テキスト、"it\'s":12.5,[true],'.repeat(400);
    const { tokenizer, tokenizerConfig } = await readModelText(fixture(`text/${family}`));
    const library = new LibraryTokenizer(tokenizer, tokenizerConfig);
    const whole = library.encode(text, { add_special_tokens: false }).ids;
    const encode = (part: string) => library.encode(part, { add_special_tokens: false }).ids;
    const pieces = [...exactChunks(text, encode, model.tokenizer.splitsAtSigns)];
    expect(pieces.length).toBe(model.tokenizer.splitsAtSigns ? Math.ceil(text.length / 2048) : 1);
    if (model.tokenizer.splitsAtSigns) expect(model.tokenizer.encodeUser(text, false)).toEqual(whole);
  });

  it('never makes a control token of user text', () => {
    const hostile = [...model.tokenizer.control].map((id) => new TextDecoder().decode(model.vocabulary.spelling(id)));
    const text = `${hostile.join('')} ${hostile.join(' x ')}`;
    for (const continues of [true, false]) {
      const ids = model.tokenizer.encodeUser(text, continues);
      expect(ids.filter((id) => model.tokenizer.control.has(id))).toEqual([]);
    }
    expect(hostile.length).toBeGreaterThan(0);
  });

  it('spells any text of a user, hostile ones too, and loses nothing', () => {
    const control = [...model.tokenizer.control].map((id) => new TextDecoder().decode(model.vocabulary.spelling(id)));
    const piece = fc.oneof(
      fc.constantFrom(
        ...control,
        ...control.map((token) => token.slice(1)),
        '<0x0A>',
        '▁',
        '<|',
        '\n\n',
        '  ',
        '\uFEFF',
      ),
      fc.string({ unit: 'grapheme', maxLength: 12 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), fc.boolean(), (parts, continues) => {
        const text = parts.join('');
        const ids = model.tokenizer.encodeUser(text, continues);
        expect(ids.filter((id) => model.tokenizer.control.has(id))).toEqual([]);
        const bytes = ids.flatMap((id) => [...(model.vocabulary.bytes(id) ?? [])]);
        const said = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes));
        // A SentencePiece vocabulary writes `▁` for a space and cannot tell the two apart. Some tokenizers put a space
        // in front.
        const plain = (t: string) => t.normalize('NFC').replaceAll('▁', ' ');
        expect([plain(text), ` ${plain(text)}`]).toContain(plain(said));
      }),
      { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) },
    );
  });
});

const BYTES = { type: 'ByteLevel', add_prefix_space: false };
const digits = (alone: boolean) => ({ type: 'Digits', individual_digits: alone });
const inOrder = (...pretokenizers: object[]) => ({ type: 'Sequence', pretokenizers });

// The words are those of the Rust library (tokenizers 0.23). Ġ is a space, Âħ U+0085,
// ï»¿ U+FEFF, and Â½ is ½.
it.each([
  ['a \u0085b', BYTES, ['a', 'Ġ', 'Âħ', 'b']],
  ['a\u0085\u0085b', BYTES, ['a', 'Âħ', 'Âħ', 'b']],
  ['a \uFEFFb', BYTES, ['a', 'Ġï»¿', 'b']],
  ["it's  12 !", BYTES, ['it', "'s", 'Ġ', 'Ġ12', 'Ġ!']],
  ['a½3 b', digits(true), ['a', '½', '3', ' b']],
  ['a½3 b', digits(false), ['a', '½3', ' b']],
  [' ½', inOrder(digits(true), BYTES), ['Ġ', 'Â½']],
])('cuts %j as the Rust library does, with %j', (text, step, words) => {
  const model = { type: 'BPE', vocab: {}, merges: [] };
  const others = { normalizer: null, post_processor: null, decoder: null, added_tokens: [] };
  const library = openLibrary({ ...others, model, pre_tokenizer: step }, {});
  expect(library.pre_tokenizer?.pre_tokenize([text])).toEqual(words);
});

const text = (letter: string) => letter.repeat(600);

it('encodes a long text once, apart for each kind, and forgets the oldest', () => {
  const made: string[] = [];
  const recent = new RecentEncodings(2_000);
  for (const [kind = '', letter = ''] of ['ua', 'ua', 'ub', 'ca', 'ua', 'uc', 'ub']) {
    if (recent.find(kind, text(letter))) continue;
    made.push(kind + letter);
    recent.keep(kind, text(letter), [600]);
  }
  expect(recent.find('u', text('b'))).toEqual([600]);
  // Three texts fit in the cache: 'ub' was the least recently used when 'uc' was added.
  expect(made).toEqual(['ua', 'ub', 'ca', 'uc', 'ub']);
});

it('does not keep short or huge texts', () => {
  const recent = new RecentEncodings(1_000);
  for (const what of ['short', text('x').repeat(2)]) {
    recent.keep('u', what, [1]);
    expect(recent.find('u', what)).toBeUndefined();
  }
});

it.each([
  ['', 1],
  ['short text', 1],
  ['word '.repeat(10_000), 25],
  ['line\n'.repeat(10_000), 25],
  ['x'.repeat(40_000), 10],
  ['👋🏽'.repeat(10_000), 10],
  ['1, 2; '.repeat(10_000), 30],
  ['1,2;'.repeat(10_000), 10],
])('cuts %.12s… into chunks that make it whole again', (text, count) => {
  const chunks = [...textChunks(text)];
  expect(chunks.join('')).toBe(text);
  expect(chunks.length).toBe(count);
  for (const piece of chunks) {
    expect(piece.length).toBeLessThanOrEqual(4_096);
    expect(piece.isWellFormed()).toBe(true);
  }
});

it('cuts before a space, or behind a single line break', () => {
  const [first, second] = textChunks('word '.repeat(10_000));
  expect(first!.endsWith('word')).toBe(true);
  expect(second!.startsWith(' word')).toBe(true);
  const [line, next] = textChunks('line\n'.repeat(10_000));
  expect(line!.endsWith('\n')).toBe(true);
  expect(next!.startsWith('line')).toBe(true);
  // Several line breaks are one token if nothing follows, and often two before a word.
  for (const chunk of textChunks(`${'word '.repeat(300)}${'line\n\n'.repeat(300)}`)) expect(chunk).not.toMatch(/^line/);
});
