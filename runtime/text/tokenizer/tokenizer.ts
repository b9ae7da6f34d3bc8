import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { atOnce } from '../../../lib/at-once.ts';
import { AssayError, messageOf } from '../../../lib/errors.ts';
import { escapePattern } from '../../../lib/grammar/text/pattern.ts';
import type { ModelText, TokenizerJson } from '../model-files.ts';

/**
 * Encodes the two kinds of text in a prompt. `continues` tells whether other text precedes, because some tokenizers put
 * a space in front of the first word of a text.
 */
export interface Tokenizer {
  /** Returns the token ids of text that a chat template wrote. It may contain control tokens. */
  encodeTemplate(text: string, continues: boolean): readonly number[];
  /** Returns the token ids of a user's text, of which none is a control token: `<|im_end|>` becomes ordinary tokens. */
  encodeUser(text: string, continues: boolean): readonly number[];
  /** Returns what `encodeUser` does. Yields between pieces of a long text, so that other work may run. */
  encodeInParts(text: string, continues: boolean): Generator<void, readonly number[]>;
  /** Ids of the tokens that control the model instead of writing text. */
  readonly control: ReadonlySet<number>;
  /** Id of each control token, by its text. */
  readonly controlTexts: ReadonlyMap<string, number>;
  /** Id of the begin token, if the tokenizer puts one in front of every text; otherwise null. */
  readonly begin: number | null;
  /** True if a word ends before a sign, whatever the vocabulary is: a text may be cut there (`textChunks`). */
  readonly splitsAtSigns: boolean;
  /** Returns the id of a token with exactly this text, such as `<|im_end|>`; undefined if there is none. */
  id(token: string): number | undefined;
}

type AddedToken = TokenizerJson['added_tokens'][number];

/**
 * Creates the tokenizer of a model. It encodes user text only up to about `mostTokens` tokens, because a longer one is
 * refused anyway, and encoding megabytes takes minutes. Throws `engine_failed` for a tokenizer that cannot be used.
 */
export function createTokenizer(model: ModelText, mostTokens = Number.POSITIVE_INFINITY): Tokenizer {
  const { tokenizer: json, tokenizerConfig: config } = model;
  const templates = `${model.template} ${model.toolTemplate}`;
  const controlTokens = json.added_tokens.filter((token) => isControl(token, templates));
  const control = new Set(controlTokens.map(({ id }) => id));
  const plain = json.added_tokens.filter(({ id }) => !control.has(id));

  const template = readable(() => openLibrary(json, config));
  const sharing = (source: TokenizerJson, added: AddedToken[]): LibraryTokenizer => {
    const own = openLibrary({ ...source, model: EMPTY_MODEL, added_tokens: added }, config);
    own.model = template.model;
    return own;
  };
  const bare = withoutPrefixSpace(json);
  const templateContinued = sharing(bare, json.added_tokens);
  const user = sharing(json, plain);
  const userContinued = sharing(bare, plain);
  const firstControl = controlTokens.length > 0 ? new RegExp(alternatives(json.added_tokens), 'u') : null;

  function encodeTemplate(text: string, continues: boolean): number[] {
    if (!continues) return ids(template, text);
    // Only the part before the first control token continues the preceding text.
    const cut = firstControl ? text.search(firstControl) : -1;
    if (cut < 0) return ids(templateContinued, text);
    return [...ids(templateContinued, text.slice(0, cut)), ...ids(template, text.slice(cut))];
  }

  const signs = splitsAtSigns(template);
  const recent = new RecentEncodings(RECENT_CHARACTERS);
  function* encodeInParts(text: string, continues: boolean): Generator<void, readonly number[]> {
    const kind = continues ? 'c' : 's';
    const known = recent.find(kind, text);
    if (known) return known;
    const encoded: number[] = [];
    for (const piece of textChunks(text, { signs })) {
      if (encoded.length > 0) yield;
      for (const id of spellOut(piece, continues || encoded.length > 0)) encoded.push(id);
      if (encoded.length > mostTokens) break;
    }
    recent.keep(kind, text, encoded);
    return encoded;
  }
  const encodeUser = (text: string, continues: boolean) => atOnce(encodeInParts(text, continues));

  function spellOut(text: string, continues: boolean): number[] {
    const encoded = ids(continues ? userContinued : user, text);
    const found = encoded.find((id) => control.has(id));
    if (found === undefined) return encoded;
    // Some vocabularies also contain the text of a control token as an ordinary token. The text is split inside it, and
    // thus encoded as several tokens.
    const spelling = controlTokens.find(({ id }) => id === found)?.content ?? '';
    if (spelling.length < 2 || !text.includes(spelling)) return encoded.filter((id) => !control.has(id));
    return text
      .split(spelling)
      .flatMap((piece, i) => (i === 0 ? [piece] : [spelling.slice(0, 1), spelling.slice(1) + piece]))
      .flatMap((piece, i) => spellOut(piece, continues || i > 0));
  }

  const id = (token: string) => template.token_to_id(token);
  const controlTexts = new Map(controlTokens.map((token) => [token.content, token.id]));
  const begin = beginToken(template, tokenText(config.bos_token));
  return { encodeTemplate, encodeUser, encodeInParts, control, controlTexts, begin, splitsAtSigns: signs, id };
}

/** Opens a tokenizer of the library, with the tokens and about the speed of the Rust library. */
export function openLibrary(json: TokenizerJson, config: object): LibraryTokenizer {
  const tokenizer = new LibraryTokenizer(json, config);
  correctPatterns(tokenizer.pre_tokenizer);
  rememberWords(tokenizer, json);
  return tokenizer;
}

/** Matches a word of byte-level BPE. `\s` is not used, because U+FEFF is a space in it, and U+0085 is none. */
const BYTE_LEVEL_WORD =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

/** Describes a step of the library that cuts texts. */
interface CuttingStep {
  config?: { type?: string; individual_digits?: boolean };
  pattern?: RegExp;
  /** Steps of a sequence. */
  tokenizers?: readonly (CuttingStep | null)[];
}

/** Replaces the patterns by which the library cuts texts elsewhere than the Rust library does. */
function correctPatterns(step: CuttingStep | null): void {
  step?.tokenizers?.forEach(correctPatterns);
  if (step?.config?.type === 'ByteLevel') step.pattern = BYTE_LEVEL_WORD;
  // ½, ² and Ⅷ are digits, too.
  if (step?.config?.type === 'Digits')
    step.pattern = step.config.individual_digits ? /\P{N}+|\p{N}/gu : /\P{N}+|\p{N}+/gu;
}

/** Number of words whose tokens a tokenizer remembers, and characters of the longest of them. */
const REMEMBERED = 10_000;
const REMEMBERED_LENGTH = 256;

/**
 * Replaces the library's cache of words (BPE). That one keeps their order of use by deleting and adding them again,
 * which took two thirds of the time to encode a text with many words. This one forgets all words when it is full. A
 * Unigram model, for which the library has no cache, gets one, and encodes words one by one where the authors' library
 * does: this one takes a text for one word, in which sums before a word round what decides between equal tokens.
 */
function rememberWords({ model }: LibraryTokenizer, json: Pick<TokenizerJson, 'pre_tokenizer'>): void {
  const words = new Map<string, string[]>();
  const cache = {
    get: (word: string) => words.get(word),
    put(word: string, tokens: string[]) {
      if (words.size >= REMEMBERED) words.clear();
      words.set(word, tokens);
    },
    clear: () => words.clear(),
  };
  if ('cache' in model) model.cache = cache;
  if (!('trie' in model)) return;
  const word = splitsAtSpaces(json.pre_tokenizer) ? /\u2581[^\u2581]*|[^\u2581]+/gu : /.+/gsu;
  model.encode = (texts: readonly string[]): string[] =>
    texts
      .flatMap((text) => text.match(word) ?? [])
      .flatMap((one) => {
        const known: string[] | undefined = cache.get(one);
        if (known) return known;
        const tokens = model.tokenize(one);
        if (one.length <= REMEMBERED_LENGTH) cache.put(one, tokens);
        return tokens;
      });
}

/** Tells whether a tokenizer splits a text at the sign that stands for a space. */
function splitsAtSpaces(step: unknown): boolean {
  // A cast: members of `tokenizer.json` are read one by one; missing ones are undefined.
  const { type, pretokenizers = [], split } = (step ?? {}) as Step & { pretokenizers?: readonly unknown[] };
  return type === 'Sequence' ? pretokenizers.some(splitsAtSpaces) : type === 'Metaspace' && split !== false;
}

/** Runs `work`. Throws `engine_failed` if the library does not support this kind of tokenizer. */
function readable<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const message = `The model's tokenizer cannot be used: ${messageOf(cause).slice(0, 400)}. Use another model.`;
    throw new AssayError('engine_failed', message, { cause });
  }
}

/** Returns the text of a special token of `tokenizer_config.json`; empty if there is none. */
export function tokenText(token: ModelText['tokenizerConfig']['bos_token']): string {
  return typeof token === 'string' ? token : (token?.content ?? '');
}

/** Maximum total characters of the user texts whose token ids are cached. The ids take some megabytes. */
const RECENT_CHARACTERS = 1_000_000;

const EMPTY_MODEL = { type: 'BPE', vocab: {}, merges: [] };

/**
 * Tells whether an added token is a control token: declared special, of the form `<|…|>`, a placeholder, or a tag that
 * a chat template writes (Qwen3 declares `<think>` as text). Gemma's added tokens for runs of line breaks and HTML
 * tags are text.
 */
function isControl({ content, special }: AddedToken, templates: string): boolean {
  if (special || /^<\|.*\|>$|^<unused\d+>$/su.test(content)) return true;
  return /^[<[].*[>\]]$/su.test(content) && templates.includes(content);
}

function ids(tokenizer: LibraryTokenizer, text: string): number[] {
  if (text === '') return [];
  // A character that is not in the vocabulary has no id, and there may be no unknown token, so it is dropped.
  return tokenizer.encode(text, { add_special_tokens: false }).ids.filter((id: number | undefined) => id !== undefined);
}

function beginToken(tokenizer: LibraryTokenizer, begin: string): number | null {
  const id = begin === '' ? undefined : tokenizer.token_to_id(begin);
  return id !== undefined && tokenizer.encode('a', { add_special_tokens: true }).ids[0] === id ? id : null;
}

function alternatives(tokens: readonly AddedToken[]): string {
  return tokens.map(({ content }) => escapePattern(content)).join('|');
}

/** Returns the definition of the same tokenizer, without the space that it would put in front of a text. */
function withoutPrefixSpace(json: TokenizerJson): TokenizerJson {
  return {
    ...json,
    normalizer: dropPrefix(json.normalizer, 'normalizers'),
    pre_tokenizer: dropPrefix(json.pre_tokenizer, 'pretokenizers'),
  };
}

interface Step {
  type?: string;
  [key: string]: unknown;
}

function dropPrefix(step: unknown, list: 'normalizers' | 'pretokenizers'): unknown {
  // A cast: members of `tokenizer.json` are read one by one; missing ones are undefined.
  const { type, ...rest } = (step ?? {}) as Step;
  switch (type) {
    case 'Sequence':
      return {
        type,
        ...rest,
        // A cast: a member of `tokenizer.json` that is missing is undefined.
        [list]: ((rest[list] ?? []) as Step[]).map((child) => dropPrefix(child, list) ?? NOTHING),
      };
    case 'Prepend':
      return NOTHING;
    case 'Metaspace':
      return { type, ...rest, prepend_scheme: 'never' };
    case 'ByteLevel':
      return { type, ...rest, add_prefix_space: false };
    default:
      return step ?? null;
  }
}

/** Normalizer that changes nothing. */
const NOTHING = { type: 'Sequence', normalizers: [] };

/**
 * Length of the shortest text that is cached, in characters. Shorter ones are encoded faster than they are looked up.
 */
const MIN_LENGTH = 512;

/**
 * Caches the token ids of long texts, such as a context that many requests share. Evicts the least recently used.
 * `maxLength` bounds the number of characters of all cached texts together.
 */
export class RecentEncodings {
  readonly #maxLength: number;
  readonly #ids = new Map<string, readonly number[]>();
  #length = 0;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** Returns the token ids of a cached text; undefined if it is not cached. Texts of different `kind` are different. */
  find(kind: string, text: string): readonly number[] | undefined {
    if (!this.#holds(text)) return undefined;
    const key = kind + text;
    const ids = this.#ids.get(key);
    // The last member is the one that was used last.
    if (ids && this.#ids.delete(key)) this.#ids.set(key, ids);
    return ids;
  }

  /** Caches the token ids of a text, unless it has fewer than 512 or more than `maxLength` characters. */
  keep(kind: string, text: string, ids: readonly number[]): void {
    if (!this.#holds(text)) return;
    const key = kind + text;
    if (!this.#ids.delete(key)) this.#length += key.length;
    this.#ids.set(key, ids);
    for (const oldest of this.#ids.keys()) {
      if (this.#length <= this.#maxLength) break;
      this.#ids.delete(oldest);
      this.#length -= oldest.length;
    }
  }

  #holds({ length }: string): boolean {
    return length >= MIN_LENGTH && length <= this.#maxLength;
  }
}

/**
 * Largest number of characters in a chunk. Encoding a whole text at once takes memory for all of it, and more than
 * linear time in the length of a word: about 10 ms for so many characters.
 */
const CHUNK = 4_096;
/** Number of characters after which a chunk ends where it may: to encode as many takes some milliseconds. */
const ENOUGH = 2_048;

const LETTER = /\p{L}/u;
const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;
const INK = /\S/u;
/** Signs that stand behind words of JSON without spaces, and of languages that are written without them. */
const SIGNS = '",;:!?)]}，。、；：！？）」』】';

/**
 * Tells whether a tokenizer ends a word before a sign behind a letter or a digit, as its pattern for words says. In one
 * without a pattern, a token of the vocabulary could have both.
 */
export function splitsAtSigns({ pre_tokenizer: split }: LibraryTokenizer): boolean {
  return [...SIGNS].every((sign) =>
    ['ab', '12'].every((word) => {
      const words: string[] = split?.(word + sign + word) ?? [];
      const before = words.slice(0, -1).map((_, i) => words.slice(0, i + 1).join(''));
      return before.some((text) => text.endsWith(word));
    }),
  );
}

/**
 * Splits a text into chunks of about 2,048 characters, where every tokenizer begins a new word: before a single space,
 * and after a single line break before a letter. A text without such places (one endless word) is split after `most`
 * characters.
 *
 * @param signs true to split also before signs that follow a word, for a tokenizer with `splitsAtSigns`
 */
export function* textChunks(
  text: string,
  { most = CHUNK, signs = false }: { most?: number; signs?: boolean } = {},
): Generator<string> {
  let from = 0;
  while (text.length - from > ENOUGH) {
    const cut = placeToCut(text, from, most, signs);
    yield text.slice(from, cut);
    from = cut;
  }
  if (from < text.length || from === 0) yield text.slice(from);
}

/** Characters before and after a cut whose tokens are compared with and without it. */
const AROUND = 32;

/**
 * Splits a text like `textChunks`, but only where `encode` returns the same tokens for what is around the cut with and
 * without it: the tokens of the pieces are those of the whole text. An endless word is one piece.
 */
export function* exactChunks(
  text: string,
  encode: (part: string) => readonly number[],
  signs: boolean,
): Generator<string> {
  let piece = '';
  for (const chunk of textChunks(text, { most: Number.POSITIVE_INFINITY, signs })) {
    const [before, after] = [piece.slice(-AROUND), chunk.slice(0, AROUND)];
    if (piece !== '' && [...encode(before), ...encode(after)].join() === encode(before + after).join()) {
      yield piece;
      piece = '';
    }
    piece += chunk;
  }
  yield piece;
}

function placeToCut(text: string, from: number, most: number, signs: boolean): number {
  const longest = Math.min(from + most, text.length);
  for (let end = from + ENOUGH; end <= longest; end += ENOUGH) {
    for (let at = end; at > end - ENOUGH; at--) {
      if (text[at] === ' ' && is(INK, text[at - 1]) && is(INK, text[at + 1])) return at;
      if (text[at - 1] === '\n' && is(INK, text[at - 2]) && is(LETTER, text[at])) return at;
      if (signs && SIGNS.includes(text.charAt(at)) && is(LETTER_OR_DIGIT, text[at - 1])) return at;
    }
  }
  // Never splits a surrogate pair.
  return /[\uDC00-\uDFFF]/u.test(text.charAt(longest)) ? longest - 1 : longest;
}

function is(kind: RegExp, character: string | undefined): boolean {
  return character !== undefined && kind.test(character);
}
