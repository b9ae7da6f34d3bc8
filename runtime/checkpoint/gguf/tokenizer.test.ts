import { Tokenizer } from '@huggingface/tokenizers';
import { expect, test } from 'vitest';
import type { GgufValue } from './read-gguf.ts';
import { ggufTokenizer } from './tokenizer.ts';

const file = (values: Record<string, GgufValue>) => ({
  metadata: new Map(Object.entries(values).map(([key, value]): [string, GgufValue] => [`tokenizer.${key}`, value])),
  tensors: new Map(),
});

const BPE = {
  'ggml.model': 'gpt2',
  'ggml.pre': 'llama-bpe',
  'ggml.tokens': ['<s>', '</s>', '1', '2', '3', '4', 'a', 'b', 'Ġ', 'ab', 'Ġab', '12', '123'],
  'ggml.token_type': [3, 3, ...Array(11).fill(1)],
  'ggml.merges': ['a b', 'Ġ ab', '1 2', '12 3'],
  'ggml.bos_token_id': 0,
  'ggml.eos_token_id': 1,
};
/** Scores as SentencePiece writes them: less for later merges. */
const SPM = {
  'ggml.model': 'llama',
  'ggml.tokens': ['<unk>', '<s>', '</s>', '<0xC3>', '<0xBC>', '▁a', 'b', 'c', 'bc', '▁abc', '▁', 'a', '▁ab'],
  'ggml.token_type': [2, 3, 3, 6, 6, ...Array(8).fill(1)],
  'ggml.scores': [0, 0, 0, 0, 0, -2, -10, -11, -1, -3, -12, -13, -4],
  'ggml.bos_token_id': 1,
  'ggml.eos_token_id': 2,
  'ggml.unknown_token_id': 0,
};

function open(values: Record<string, GgufValue>) {
  const { tokenizer, config } = ggufTokenizer(file(values));
  return new Tokenizer(JSON.parse(JSON.stringify(tokenizer)), config);
}

test.each<[string, Record<string, GgufValue>, string, number[]]>([
  ['byte-level BPE', BPE, 'ab ab', [9, 10]],
  ['at most three digits', BPE, '1234', [12, 5]],
  ['a control token', BPE, 'a<s>', [6, 0]],
  ['a merge within three digits', { ...BPE, 'ggml.pre': 'smaug-bpe', 'ggml.merges': ['1 2'] }, '123', [11, 4]],
  ['single digits', { ...BPE, 'ggml.pre': 'smollm' }, '12', [2, 3]],
  ['the pair of the best score first', SPM, 'abc', [9]],
  ['a prefix', SPM, 'b', [10, 6]],
  ['no prefix', { ...SPM, 'ggml.add_space_prefix': false }, 'bc', [8]],
  ['bytes', { ...SPM, 'ggml.add_space_prefix': false }, 'ü', [3, 4]],
])('%s', (_, values, text, ids) => {
  expect(open(values).encode(text, { add_special_tokens: false }).ids).toEqual(ids);
});

test('a token before a text is put as the metadata or the kind of the tokenizer say', () => {
  const first = (values: Record<string, GgufValue>) => open(values).encode('b').ids[0];
  expect(first(BPE)).toBe(0);
  expect(first({ ...BPE, 'ggml.add_bos_token': false })).toBe(7);
  expect(first({ ...BPE, 'ggml.pre': 'qwen2' })).toBe(7);
  expect(first(SPM)).toBe(1);
});

test('the chat template and the special tokens are kept', () => {
  expect(ggufTokenizer(file({ ...BPE, chat_template: '{{ x }}' })).config).toMatchObject({
    chat_template: '{{ x }}',
    bos_token: '<s>',
    eos_token: '</s>',
  });
});

test.each<[string, Record<string, GgufValue>, RegExp]>([
  ['an unknown tokenizer', { ...BPE, 'ggml.model': 'bert' }, /tokenizer.ggml.model: "bert"/],
  ['an unknown way of cutting', { ...BPE, 'ggml.pre': 'new' }, /tokenizer.ggml.pre: "new"/],
  ['no way of cutting', { ...BPE, 'ggml.pre': 1 }, /tokenizer.ggml.pre: 1/],
  ['no tokens', { ...BPE, 'ggml.tokens': 1 }, /no texts tokenizer.ggml.tokens/],
  ['fewer types than tokens', { ...BPE, 'ggml.token_type': [1] }, /no 13 numbers tokenizer.ggml.token_type/],
  ['a merge of nothing', { ...BPE, 'ggml.merges': ['ab'] }, /merge "ab"/],
  ['no scores', { 'ggml.model': 'llama', 'ggml.tokens': ['a'] }, /no tokenizer.ggml.scores/],
])('%s is refused', (_, values, message) => {
  expect(() => ggufTokenizer(file(values))).toThrow(message);
});
