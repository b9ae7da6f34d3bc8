import type { Tokenizer } from '@huggingface/tokenizers';
import { append } from '../../lib/append.ts';
import { AssayError, messageOf } from '../../lib/errors.ts';
import { longerThanContext, READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import type { ModelText } from '../text/model-files.ts';
import { exactChunks, openLibrary, splitsAtSigns, textChunks, tokenText } from '../text/tokenizer/tokenizer.ts';

/** Encodes texts for an encoder model. Without a vocabulary for grammars, so any kind of tokenizer will do. */
export interface EncoderTokenizer {
  /**
   * Returns the ids of a user's text alone, without the special tokens around it. The text of a control token becomes
   * ordinary tokens, so that no text can end a part of a row or begin another one. Throws `input_too_long` for a text
   * that no encoder model reads. Yields after pieces of a long text and at its end, so that other work may run.
   */
  encodeInParts(text: string): Generator<void, number[]>;
  /**
   * Returns the id of the token with exactly this text, which `encode` never returns from then on. Throws
   * `engine_failed` if there is none.
   */
  id(token: string): number;
  /** Returns this tokenizer for a model whose author reads the texts of these tokens as control tokens. */
  reading(kinds: readonly ('sep' | 'mask')[]): EncoderTokenizer;
  /** Texts of the control tokens by their ids, and the ids of those that `encode` does return. */
  readonly control: ReadonlyMap<number, string>;
  readonly kept: ReadonlySet<number>;
  readonly special: SpecialTokens;
  /** Ids in front of, between and behind the two texts of a pair. */
  readonly pair: readonly [before: readonly number[], between: readonly number[], after: readonly number[]];
}

export interface SpecialTokens {
  cls: number;
  sep: number;
  pad: number;
  /** Absent if the tokenizer has no such token. */
  mask?: { id: number; text: string };
}

/** Texts of special tokens for tokenizers whose configuration names none: those of BERT, of RoBERTa and of Gemma. */
const TEXTS = {
  cls: ['[CLS]', '<s>', '<bos>'],
  sep: ['[SEP]', '</s>', '<eos>'],
  pad: ['[PAD]', '<pad>'],
  mask: ['[MASK]', '<mask>'],
} as const;

/** Tokens of a text that no encoder model reads, in windows either. */
const MOST_TOKENS = 65_536;
/** Characters that are encoded at once, but for those of an endless word. */
const SLICE = 4_096;

/** Creates the tokenizer of an encoder model. Throws `engine_failed` for one that cannot be used. */
export function createEncoderTokenizer({
  tokenizer: json,
  tokenizerConfig: config,
}: Pick<ModelText, 'tokenizer' | 'tokenizerConfig'>): EncoderTokenizer {
  const library = readable(() => openLibrary(json, config));
  const whole = (text: string): number[] =>
    text === ''
      ? []
      : // A character that is not in the vocabulary has no id, and there may be no unknown token, so it is dropped.
        library.encode(text, { add_special_tokens: false }).ids.filter((id: number | undefined) => id !== undefined);
  const signs = splitsAtSigns(library);
  const found = (kind: keyof typeof TEXTS): { id: number; text: string } | undefined => {
    const texts = [tokenText(config[`${kind}_token`]), ...TEXTS[kind]];
    const text = texts.find((one) => one !== '' && library.token_to_id(one) !== undefined);
    const id = text === undefined ? undefined : library.token_to_id(text);
    return text === undefined || id === undefined ? undefined : { id, text };
  };
  const needed = (kind: keyof typeof TEXTS): number => {
    const token = found(kind);
    if (!token) throw unusable(`it has no ${kind} token`);
    return token.id;
  };
  const mask = found('mask');
  const special = { cls: needed('cls'), sep: needed('sep'), pad: needed('pad'), ...(mask ? { mask } : {}) };
  const pair = pairOf(library, whole) ?? ([[special.cls], [special.sep], [special.sep]] as const);
  // What a text has no token for becomes the unknown token, so that one is no control token.
  const unknown = tokenText(config.unk_token);
  const control = new Map(
    json.added_tokens.flatMap(({ id, content, special }) =>
      (special || CONTROL.test(content)) && content !== unknown ? [[id, content] as const] : [],
    ),
  );
  const reading = (kept: ReadonlySet<number>): EncoderTokenizer => {
    const plain = (id: number): boolean => !control.has(id) || kept.has(id);
    function* encodeInParts(text: string): Generator<void, number[]> {
      const ids: number[] = [];
      for (const piece of exactChunks(text, whole, signs)) {
        let tokens = ids.length;
        // An endless word has its author's tokens only if it is encoded whole, which is bounded by their number.
        for (const part of piece.length > SLICE ? textChunks(piece) : []) {
          tokens += whole(part).length;
          checkTokens(tokens);
          yield;
        }
        for (const id of whole(piece)) {
          if (plain(id)) ids.push(id);
          else append(ids, spelled(id));
        }
        checkTokens(ids.length);
        yield;
      }
      return ids;
    }
    /** Returns the ids of a control token's text, which is split inside the token, and so encoded as several. */
    const spelled = (id: number): number[] => {
      const spelling = control.get(id) ?? '';
      return [...whole(spelling.slice(0, 1)), ...whole(spelling.slice(1))].filter(plain);
    };
    return {
      encodeInParts,
      id(token) {
        const id = library.token_to_id(token);
        if (id === undefined) throw unusable(`it has no token ${token}`);
        control.set(id, token);
        return id;
      },
      reading: (kinds) =>
        reading(new Set(kinds.flatMap((kind) => (kind === 'sep' ? special.sep : (special.mask?.id ?? []))))),
      control,
      kept,
      special,
      pair,
    };
  };
  return reading(new Set());
}

function checkTokens(tokens: number): void {
  if (tokens > MOST_TOKENS) throw longerThanContext(MOST_TOKENS, `more than ${MOST_TOKENS}`, READ_IN_WINDOWS);
}

/** Matches the texts of control tokens that a tokenizer does not declare as special. */
const CONTROL = /^<\|.*\|>$|^<unused\d+>$|^\[unused\d+\]$/su;

/** Two texts of which every tokenizer makes tokens, to find the special tokens around them. */
const SAMPLE = ['a', 'b'] as const;

/**
 * Returns the ids around the two texts of a pair, as the tokenizer's post-processor adds them; null if it adds none.
 */
function pairOf(library: Tokenizer, encode: (text: string) => number[]): EncoderTokenizer['pair'] | null {
  const [one, other] = SAMPLE;
  const [first, second] = [encode(one), encode(other)];
  const ids: number[] = library.encode(one, { text_pair: other, add_special_tokens: true }).ids;
  const start = ids.findIndex((_, i) => first.every((id, k) => ids[i + k] === id));
  const next = ids.findIndex((_, i) => i >= start + first.length && second.every((id, k) => ids[i + k] === id));
  if (start < 0 || next <= start + first.length) return null;
  return [ids.slice(0, start), ids.slice(start + first.length, next), ids.slice(next + second.length)];
}

function readable<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw unusable(messageOf(cause).slice(0, 400), cause);
  }
}

function unusable(reason: string, cause?: unknown): AssayError {
  const message = `The model's tokenizer cannot be used: ${reason}. Use another model.`;
  return new AssayError('engine_failed', message, { cause });
}
