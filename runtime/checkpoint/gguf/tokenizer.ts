import type { AssayError } from '../../../lib/errors.ts';
import { unusable } from '../../onnx/unusable.ts';
import type { GgufFile, GgufValue } from './read-gguf.ts';

/** Contents of `tokenizer.json` and `tokenizer_config.json`. */
export interface TokenizerFiles {
  tokenizer: object;
  config: object;
}

/** Kinds of tokens (`tokenizer.ggml.token_type`). */
const Kind = { normal: 1, unknown: 2, control: 3, user: 4 } as const;

const CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const WORD = '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+';
const REST = '| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const QWEN2 = `${CONTRACTION}|${WORD}|\\p{N}${REST}`;
const LLAMA3 = `${CONTRACTION}|${WORD}|\\p{N}{1,3}${REST}`;

const byteLevel = (regex: boolean) => ({
  ...{ type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: regex },
});
const split = (regex: string) => ({
  type: 'Sequence',
  pretokenizers: [{ type: 'Split', pattern: { Regex: regex }, behavior: 'Isolated', invert: false }, byteLevel(false)],
});
const DIGITS = {
  type: 'Sequence',
  pretokenizers: [{ type: 'Digits', individual_digits: true }, byteLevel(true)],
};

/** Describes how a text is cut before its parts become tokens. */
interface Cutting {
  pre_tokenizer: object;
  normalizer?: object;
  /** True if a part that is a token is taken whole. */
  whole?: true;
  /** True if a token is put before all texts unless the metadata says otherwise. */
  begins?: true;
}

const LLAMA3_CUTTING: Cutting = { pre_tokenizer: split(LLAMA3), whole: true, begins: true };
const QWEN2_CUTTING: Cutting = { pre_tokenizer: split(QWEN2), normalizer: { type: 'NFC' } };

/** The known ways of cutting, by `tokenizer.ggml.pre` (llama.cpp, `src/llama-vocab.cpp`). */
const CUTTINGS: Readonly<Record<string, Cutting>> = {
  'gpt-2': { pre_tokenizer: byteLevel(true) },
  ...{ smollm: { pre_tokenizer: DIGITS }, refact: { pre_tokenizer: DIGITS }, starcoder: { pre_tokenizer: DIGITS } },
  ...{ qwen2: QWEN2_CUTTING, dbrx: { pre_tokenizer: split(LLAMA3) } },
  ...{ 'llama-bpe': LLAMA3_CUTTING, 'llama-v3': LLAMA3_CUTTING, llama3: LLAMA3_CUTTING, falcon3: LLAMA3_CUTTING },
  'smaug-bpe': { pre_tokenizer: split(LLAMA3) },
};

/**
 * Makes the files of a tokenizer from the metadata of a GGUF file: byte-level BPE (`gpt2`) with a known way of cutting,
 * or SentencePiece's BPE (`llama`). Throws `engine_failed` for any other.
 */
export function ggufTokenizer({ metadata }: GgufFile): TokenizerFiles {
  const value = (key: string) => metadata.get(`tokenizer.ggml.${key}`);
  const tokens = texts(value('tokens'), 'tokens');
  const types = numbers(value('token_type'), 'token_type', tokens.length) ?? tokens.map(() => Kind.normal);
  const kind = value('model');
  const pre = value('pre') ?? 'default';
  if (kind !== 'llama' && kind !== 'gpt2') throw refusal('model', kind);
  const cutting = typeof pre === 'string' && Object.hasOwn(CUTTINGS, pre) ? CUTTINGS[pre] : undefined;
  if (kind === 'gpt2' && !cutting) throw refusal('pre', pre);
  const vocab: Record<string, number> = Object.create(null);
  // Of equal tokens, the first keeps its text.
  for (const [id, token] of tokens.entries()) vocab[token] ??= id;
  const added = tokens.flatMap((content, id) => {
    const type = types[id];
    if (type !== Kind.control && type !== Kind.user && type !== Kind.unknown) return [];
    const common = { single_word: false, lstrip: false, rstrip: false, normalized: false };
    return [{ id, content, ...common, special: type !== Kind.user }];
  });
  const named = (name: string): string | null => {
    const id = value(`${name}_token_id`);
    return typeof id === 'number' ? (tokens[id] ?? null) : null;
  };
  const begins = flag(value('add_bos_token')) ?? (kind === 'llama' || cutting?.begins === true);
  const around = {
    first: begins ? named('bos') : null,
    last: flag(value('add_eos_token')) === true ? named('eos') : null,
  };
  const common = { version: '1.0', truncation: null, padding: null, added_tokens: added };
  const tokenizer =
    kind === 'gpt2'
      ? {
          ...common,
          normalizer: cutting?.normalizer ?? null,
          pre_tokenizer: cutting?.pre_tokenizer,
          post_processor: template(around, vocab) ?? byteLevel(false),
          decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
          model: {
            ...{ type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: '', end_of_word_suffix: '' },
            ...{ fuse_unk: false, byte_fallback: false, ignore_merges: cutting?.whole === true, vocab },
            merges: texts(value('merges'), 'merges').map(pair),
          },
        }
      : {
          ...common,
          ...pieces(flag(value('add_space_prefix')) ?? true),
          post_processor: template(around, vocab),
          model: {
            ...{ type: 'BPE', dropout: null, unk_token: named('unknown') ?? tokens[0] },
            ...{ continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: true, byte_fallback: true },
            ...{ ignore_merges: false, vocab },
            merges: value('merges')
              ? texts(value('merges'), 'merges').map(pair)
              : mergesOf(tokens, types, numbers(value('scores'), 'scores', tokens.length), vocab),
          },
        };
  const chat = metadata.get('tokenizer.chat_template');
  return {
    tokenizer,
    config: {
      tokenizer_class: 'PreTrainedTokenizerFast',
      clean_up_tokenization_spaces: false,
      bos_token: named('bos'),
      eos_token: named('eos'),
      pad_token: named('padding'),
      unk_token: named('unknown'),
      ...(typeof chat === 'string' ? { chat_template: chat } : {}),
    },
  };
}

function refusal(key: string, value: unknown): AssayError {
  const text = JSON.stringify(value)?.slice(0, 80) ?? 'nothing';
  return unusable(`its metadata says tokenizer.ggml.${key}: ${text}, which is not known here`);
}

function texts(value: GgufValue | undefined, key: string): string[] {
  if (!Array.isArray(value) || value.some((item) => typeof item !== 'string')) {
    throw unusable(`its metadata has no texts tokenizer.ggml.${key}`);
  }
  return value;
}

function numbers(value: GgufValue | undefined, key: string, length: number): number[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || value.length !== length || value.some((item) => typeof item !== 'number')) {
    throw unusable(`its metadata has no ${length} numbers tokenizer.ggml.${key}`);
  }
  return value;
}

function flag(value: GgufValue | undefined): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}

/** Splits a merge at its space. The first character may be a space itself. */
function pair(merge: string): [string, string] {
  const at = merge.indexOf(' ', 1);
  if (at < 1) throw unusable(`its metadata has the merge ${JSON.stringify(merge).slice(0, 80)}, which is no pair`);
  return [merge.slice(0, at), merge.slice(at + 1)];
}

/** Returns a post-processor that puts tokens around a text; null if there are none. */
function template(
  { first, last }: { first: string | null; last: string | null },
  vocab: Readonly<Record<string, number>>,
): object | null {
  const around = [first, last].filter((token) => token !== null);
  if (around.length === 0) return null;
  const part = (token: string | null) => (token === null ? [] : [{ SpecialToken: { id: token, type_id: 0 } }]);
  const single = [...part(first), { Sequence: { id: 'A', type_id: 0 } }, ...part(last)];
  return {
    type: 'TemplateProcessing',
    single,
    pair: [...single, { Sequence: { id: 'B', type_id: 1 } }],
    special_tokens: Object.fromEntries(
      around.map((token) => [token, { id: token, ids: [vocab[token]], tokens: [token] }]),
    ),
  };
}

/** Returns the steps around SentencePiece's tokens, in which a space is `▁`. */
function pieces(prefix: boolean): object {
  return {
    normalizer: {
      type: 'Sequence',
      normalizers: [
        ...(prefix ? [{ type: 'Prepend', prepend: '▁' }] : []),
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
    pre_tokenizer: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        ...(prefix ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : []),
      ],
    },
  };
}

/** Longest token, in characters, whose parts become merges: work grows with its square. Real ones have up to 150. */
const MAX_TOKEN_LENGTH = 512;

/**
 * Returns SentencePiece's vocabulary as ordered merges. It merges the pair whose result has the highest score: every
 * way to cut a token into two tokens is a merge, those of the highest score first.
 */
function mergesOf(
  tokens: readonly string[],
  types: readonly number[],
  scores: readonly number[] | undefined,
  vocab: Readonly<Record<string, number>>,
): [string, string][] {
  if (!scores) throw unusable('its metadata has no tokenizer.ggml.scores');
  const list: { score: number; id: number; left: string; right: string }[] = [];
  for (const [id, token] of tokens.entries()) {
    const type = types[id];
    if ((type !== Kind.normal && type !== Kind.user) || token.length > MAX_TOKEN_LENGTH) continue;
    let left = '';
    for (const character of token) {
      left += character;
      const right = token.slice(left.length);
      if (right !== '' && left in vocab && right in vocab) list.push({ score: scores[id] ?? 0, id, left, right });
    }
  }
  const place = (token: string) => vocab[token] ?? 0;
  list.sort(
    (a, b) => b.score - a.score || a.id - b.id || place(a.left) - place(b.left) || place(a.right) - place(b.right),
  );
  return list.map(({ left, right }) => [left, right]);
}
