import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { Tokenizer } from '@huggingface/tokenizers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { atOnce } from '../../lib/at-once.ts';
import { batchOfSystemOne } from '../../lib/questions/systemone.ts';
import type { DecisionContract } from '../../runtime/contracts/contract.ts';
import { contractText } from '../../runtime/contracts/contract-text.ts';
import { contractInFolder } from '../../runtime/contracts/read-files.ts';
import type { Adapter } from '../../runtime/encoder/adapter.ts';
import { findWords, SchemaReader } from '../../runtime/encoder/contracts/gliner2.ts';
import { wholeAdapter } from '../../runtime/encoder/contracts/whole.ts';
import { createEncoderTokenizer, type EncoderTokenizer } from '../../runtime/encoder/encoder-tokenizer.ts';
import { openAdapter } from '../../runtime/encoder/open-adapter.ts';
import type { TokenizerJson } from '../../runtime/text/model-files.ts';
import { loadTextModel } from '../../runtime/text/text-model.ts';
import { EncoderModel } from '../../runtime/worker/encoder-model.ts';
import { fixture } from '../fixture.ts';
import { contractOf, FAMILIES, tokenizerOf } from './encoder-fixtures.ts';

/* The texts of encoder models, and of decision models that read whole prompts, are encoded in parts. */

const LIMIT = 8192;
const WHOLE = [
  ['clef', 'wide'],
  ['d3', 'wide'],
] as const;
/** Characters that are encoded before other work has a turn, and those around a cut, which are encoded again. */
const MOST = 4096 + 128;

const words = (count: number, of: string) => Array.from({ length: count }, (_, i) => `${of}${i}`).join(' ');

async function adapterOf(family: string): Promise<Adapter> {
  const [, tokenizer] = WHOLE.find(([name]) => name === family) ?? [];
  if (!tokenizer) {
    return openAdapter(
      contractOf(family),
      tokenizerOf(family),
      new Set(['model', 'encoder', 'classifier', 'span_rep']),
    );
  }
  const text = contractText(await loadTextModel(fixture(`decisions/tokenizers/${tokenizer}`)), 4 * LIMIT);
  const contract = (await contractInFolder(fixture(`decisions/${family}`), `acme/${family}`)) as DecisionContract;
  return wholeAdapter(contract, contract.open(text, fixture(`decisions/${family}`)), text);
}

function modelOf(adapter: Adapter): EncoderModel {
  const unused = async () => Promise.reject(new Error('nothing runs'));
  const graphs = { alone: true, batches: () => [], run: unused, head: unused, close: unused };
  const contract = { name: 'nli', version: null, temperature: 'none' };
  const model = 'acme/model' as never;
  return new EncoderModel({ model, contract, adapter, graphs, maxPromptLen: LIMIT, windows: true });
}

const described = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`option ${i}`, words(40, 'd')]));
const REQUESTS = {
  state: { state: words(1200, 's'), questions: { a: { type: 'noul', instructions: 'Is it?' } } },
  question: { state: 'x', questions: { a: { type: 'noul', instructions: words(1500, 'q') } } },
  options: { state: 'x', questions: { a: { type: 'choice', instructions: 'Which?', criteria: described } } },
};

afterEach(() => {
  vi.restoreAllMocks();
});

describe.each([...FAMILIES, ...WHOLE.map(([name]) => name)])('%s', (family) => {
  it.each(Object.entries(REQUESTS))('encodes a long %s with turns for other work', async (long, body) => {
    const adapter = await adapterOf(family);
    // Larger than those of the fixtures, so that all texts are encoded.
    const { capabilities } = adapter;
    const model = modelOf({ ...adapter, capabilities: { ...capabilities, max_tokens: LIMIT } });
    const encode = vi.spyOn(Tokenizer.prototype, 'encode');
    const batch = batchOfSystemOne(body as never, JSON.stringify(body));
    const parts = model.prepare({ kind: 'tasks', batch }, {});
    let [most, all, done] = [0, 0, false];
    while (!done) {
      encode.mockClear();
      try {
        done = parts.next().done ?? false;
      } catch (error) {
        // Rows of the fixtures have few tokens.
        expect(error).toMatchObject({ code: 'input_too_long' });
        done = true;
      }
      const characters = encode.mock.calls.reduce((sum: number, [text]: [string]) => sum + text.length, 0);
      most = Math.max(most, characters);
      all += characters;
    }
    // Some models read an option's name only, or refuse the first that is too long.
    if (long !== 'options') expect(all).toBeGreaterThan(MOST);
    expect(most).toBeLessThanOrEqual(MOST);
  });
});

/** Texts of more than 2,048 characters. */
const TEXTS: Readonly<Record<string, string>> = {
  words: words(2000, 'Word'),
  lines: `${words(300, 'one\ntwo ')}\n\n${'three\n\nfour\n'.repeat(400)}`,
  spaces: `${words(600, 'wide  ')}\t${words(600, ' \n')}   end  `,
  letters: `${'Über Köln 🎉 案件处理，'.repeat(200)} ${'案件处理'.repeat(600)} e\u0301 \u0301x`.repeat(2),
  json: JSON.stringify(
    Array.from({ length: 200 }, (_, i) => ({ id: i, name: `n ${i}`, text: `a "${i}" b` })),
    null,
    1,
  ),
  compact: JSON.stringify(Array.from({ length: 200 }, (_, i) => ({ id: i, text: `It's`, f: [1.5, true] }))),
  unknown: '☃ ☃☃ \u2581 \uff5e '.repeat(400),
};

describe.each(FAMILIES)('%s', (family) => {
  it.each(Object.entries(TEXTS))('has the tokens of the whole text: %s', (_, text) => {
    const { encodeInParts } = tokenizerOf(family);
    const library = vi.spyOn(Tokenizer.prototype, 'encode');
    const ids = atOnce(encodeInParts(text));
    const [tokenizer] = library.mock.contexts as [Tokenizer];
    vi.restoreAllMocks();
    // What the library itself does with a text, of which a Unigram model's words are no longer encoded one by one.
    Reflect.deleteProperty(tokenizer.model, 'encode');
    expect(ids).toEqual(tokenizer.encode(text, { add_special_tokens: false }).ids);
  });
});

/** Creates the tokenizer of a fixture with another definition. */
function changed(family: string, change: (json: TokenizerJson) => TokenizerJson): EncoderTokenizer {
  const folder = fixture(`encoders/${family}`);
  const read = (name: string) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8'));
  const tokenizerConfig = read('tokenizer_config.json');
  return createEncoderTokenizer({ tokenizer: change(read('tokenizer.json')), tokenizerConfig });
}

it('leaves out a cut behind a token that swallows the space', () => {
  const added = { id: 600, content: 'Word', rstrip: true, lstrip: false, normalized: false, single_word: false };
  const { encodeInParts } = changed('nli-modernbert', (json) => ({
    ...json,
    added_tokens: [...json.added_tokens, added],
  }));
  expect(atOnce(encodeInParts('Word '.repeat(2000)))).toEqual(Array(2000).fill(600));
});

it('gives a word of a Unigram model the same tokens everywhere, where two splits are equally probable', () => {
  const [space, one, two] = [4, 5, 6];
  // In 64 bits, what is in front of a word decides whether -5.8 and -4.8 are more than -4.8 and -5.8.
  const scores = [['\u2581', -3] as const, ['a', -5.8] as const, ['aa', -4.8] as const];
  const { encodeInParts } = changed('nli-deberta', (json) => {
    const { vocab } = json.model as unknown as { vocab: unknown[] };
    return { ...json, model: { ...json.model, vocab: [...vocab.slice(0, space), ...scores] } };
  });
  expect(atOnce(encodeInParts('aaa'))).toEqual([space, two, one]);
  expect(atOnce(encodeInParts('aaa '.repeat(300)))).toEqual(Array(300).fill([space, two, one]).flat());
});

/** The library's words. */
const SUBWORD = '[\\p{L}\\p{N}_\\p{M}\\u200c\\u200d]';
const PUBLISHED = new RegExp(
  `(?:https?://[^\\s]+|www\\.[^\\s]+)|[a-z0-9._%+-]+@[a-z0-9.-]+\\.[a-z]{2,}|@[a-z0-9_]+|${SUBWORD}+(?:[-_]${SUBWORD}+)*|\\S`,
  'giu',
);

describe('the words of GLiNER2', () => {
  it.each([
    'Write to ann.lee+x@mail.example.org, or @ann_lee!',
    'a%a%@ a.b@c a.b@c.d a.b@c.de.f @a.co x@@y.com',
    'http://a.b/c?d=e@f.gh www.x.y@z.com not-a_word--x _ -',
    '%+-@x.com a%a%@x.c0m \u212a@x.com ſ.%@a.bc 案件@处理.com',
  ])('are those of the library: %s', (text) => {
    const wanted = Array.from(text.matchAll(PUBLISHED), ({ 0: word, index }) => [word, index]);
    expect(Array.from(findWords(text), ({ 0: word, index }) => [word, index])).toEqual(wanted);
  });

  it('are found in a text that could be one name of a mail address', () => {
    expect([...findWords('a%'.repeat(200_000))]).toHaveLength(400_000);
  });
});

it('scores the spans of GLiNER2 with turns for other work', async () => {
  const [width, count] = [4, 500];
  const first = Array.from({ length: count }, (_, i) => i);
  const words = first.map((i) => ({ ids: [7], start: 2 * i, end: 2 * i + 1 }));
  const row = { ids: words.flatMap(({ ids }) => ids), shared: count, markers: [] };
  const run = async (_: string, { span_start_idx: starts }: { span_start_idx?: { dims: readonly number[] } }) =>
    new Float32Array(width * starts!.dims[1]!).fill(1);
  const schema = { row, parts: [], first, prefix: [], words };
  const reader = new SchemaReader(schema, { states: new Float32Array(width * count) }, run, 8);
  let done = false;
  const spans = reader.spans(new Float32Array(width).fill(1), 0.5).finally(() => {
    done = true;
  });
  let turns = 0;
  for (; !done; turns++) await setImmediate();
  expect(await spans).toHaveLength(count);
  expect(turns).toBeGreaterThan(3);
});
