import { AssayError } from '../../../lib/errors.ts';
import type { Vocabulary } from '../../../lib/grammar/constraint.ts';
import { MAX_TOKEN_ID, type ModelText, type TokenizerJson } from '../model-files.ts';
import { reasoningFormat } from '../output/reasoning-format.ts';
import { type Tokenizer, tokenText } from './tokenizer.ts';

/** Provides the bytes of the tokens, for grammars, for the detokenizer and for log-probabilities. */
export interface TextVocabulary extends Vocabulary {
  /** Returns the bytes of any token, including control tokens (`<think>`); empty for an id without text. */
  spelling(token: number): Uint8Array;
  /**
   * Returns the bytes that a token adds to a chat's answer. Special tokens, `<|…|>` and end tokens add none, except the
   * tags around reasoning.
   */
  written(token: number): Uint8Array;
  /** True if texts begin with a space that the decoder removes (Llama 2: `▁Hello`). */
  readonly leadingSpace: boolean;
}

const UTF8 = new TextEncoder();
const EMPTY = new Uint8Array(0);

/**
 * Determines the bytes that each token writes. Byte-level vocabularies (GPT-2, Llama 3, Qwen) represent bytes as
 * characters. SentencePiece vocabularies (Llama 2, Gemma, Phi-3) write `▁` for a space, and `<0x0A>` for a byte that no
 * other token contains. Throws `engine_failed` for a tokenizer of another kind, such as WordPiece, and for a token id
 * that is not valid.
 *
 * @param endOfTurn ids of tokens that end an answer, besides those that the model's files name
 * @param width number of logits at each position; tokens beyond it cannot be chosen, whatever the tokenizer's files
 *   say. Absent: the number of tokens in the files
 */
export function createVocabulary(
  model: ModelText,
  tokenizer: Tokenizer,
  { endOfTurn = [], width }: { endOfTurn?: readonly number[]; width?: number | undefined } = {},
): TextVocabulary {
  const { pieces, size } = readPieces(model.tokenizer);
  const spell = spelling(model.tokenizer);
  const table: (Uint8Array | undefined)[] = new Array(width ?? size);
  for (const [piece, id] of pieces) if (id < table.length) table[id] = spell(piece);
  for (const { id, content } of model.tokenizer.added_tokens) if (id < table.length) table[id] = UTF8.encode(content);

  const { format: reasoning } = reasoningFormat(model.template ?? '');
  const end = new Set([...model.endTokens, ...endOfTurn]);
  const eos = tokenizer.id(tokenText(model.tokenizerConfig.eos_token));
  if (eos !== undefined) end.add(eos);
  const isSilent = ({ special, content }: TokenizerJson['added_tokens'][number]) =>
    special || /^<\|.*\|>$/su.test(content);
  const special = new Set(model.tokenizer.added_tokens.filter(isSilent).map(({ id }) => id));
  for (const tag of reasoning.tokens) special.delete(tokenizer.id(tag) ?? -1);
  return {
    size: table.length,
    bytes: (token) => (tokenizer.control.has(token) || end.has(token) ? null : (table[token] ?? null)),
    spelling: (token) => table[token] ?? EMPTY,
    written: (token) => (special.has(token) || end.has(token) ? EMPTY : (table[token] ?? EMPTY)),
    encode: (text) => [...tokenizer.encodeUser(text, true)],
    end,
    leadingSpace: takesLeadingSpace(model.tokenizer.decoder),
  };
}

function readPieces(json: TokenizerJson): { pieces: Iterable<[string, number]>; size: number } {
  const vocab = json.model.vocab;
  const pieces: [string, number][] = Array.isArray(vocab)
    ? vocab.map((entry, id) => [String(entry[0]), id])
    : // A cast: the tokenizer has already been created from this vocabulary.
      Object.entries((vocab ?? {}) as Record<string, number>);
  let size = 0;
  for (const [, id] of pieces) {
    if (!(Number.isInteger(id) && id >= 0 && id <= MAX_TOKEN_ID))
      throw new AssayError(
        'engine_failed',
        "The model's tokenizer.json has a token id that is not valid. Download the model again.",
      );
    size = Math.max(size, id + 1);
  }
  for (const { id } of json.added_tokens) size = Math.max(size, id + 1);
  return { pieces, size };
}

function spelling(json: TokenizerJson): (piece: string) => Uint8Array {
  const steps = decoderSteps(json.decoder);
  if (steps.some(({ type }) => type === 'ByteLevel')) return (piece) => byteLevelBytes(piece) ?? UTF8.encode(piece);
  const space = steps.find(({ type }) => type === 'Metaspace')?.replacement ?? '▁';
  if (steps.some(({ type }) => type === 'Metaspace' || type === 'ByteFallback' || type === 'Replace')) {
    return (piece) => byteFallback(piece) ?? UTF8.encode(piece.replaceAll(space, ' '));
  }
  throw new AssayError(
    'engine_failed',
    'The model has a tokenizer that does not spell its tokens as bytes. Use a model with byte-level BPE or SentencePiece.',
  );
}

function byteFallback(piece: string): Uint8Array | null {
  const hex = /^<0x([0-9A-Fa-f]{2})>$/u.exec(piece);
  return hex ? Uint8Array.of(Number.parseInt(hex[1] ?? '', 16)) : null;
}

interface DecoderStep {
  type?: string;
  replacement?: string;
  decoders?: DecoderStep[];
  content?: string;
  start?: number;
  prepend_scheme?: string;
  /** Older name of `prepend_scheme`: false is `never`. */
  add_prefix_space?: boolean;
}

function decoderSteps(decoder: unknown): DecoderStep[] {
  // A cast: members of `tokenizer.json` are read one by one; missing ones are undefined.
  const step = (decoder ?? {}) as DecoderStep;
  return step.type === 'Sequence' ? (step.decoders ?? []).flatMap(decoderSteps) : [step];
}

/**
 * Tells whether decoding removes the space in front of the first token. A Metaspace step does so unless its
 * pre-tokenizer adds none.
 *
 * @param decoder member `decoder` of `tokenizer.json`
 */
export function takesLeadingSpace(decoder: unknown): boolean {
  return decoderSteps(decoder).some((step) =>
    step.type === 'Metaspace'
      ? step.prepend_scheme !== 'never' && step.add_prefix_space !== false
      : step.type === 'Strip' && step.content === ' ' && (step.start ?? 0) > 0,
  );
}

/**
 * Maps each character of byte-level BPE's alphabet to its byte. The alphabet has a printable character for each byte,
 * which makes a vocabulary plain text: printable bytes are their own character, the others start at U+0100. Source:
 * `bytes_to_unicode` in GPT-2's encoder.py.
 */
const BYTE_OF: ReadonlyMap<string, number> = (() => {
  const printable = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const map = new Map<string, number>();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) map.set(String.fromCodePoint(printable(byte) ? byte : next++), byte);
  return map;
})();

/** Returns the bytes of a byte-level token; null if one of its characters is not in the alphabet. */
function byteLevelBytes(token: string): Uint8Array | null {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = BYTE_OF.get(token.charAt(i));
    if (byte === undefined) return null;
    bytes[i] = byte;
  }
  return bytes;
}
