import type { TextVocabulary } from './vocabulary.ts';

/**
 * Converts a stream of tokens to text, without the space that the tokenizer puts in front. If a character consists of
 * several tokens, withholds its bytes until it is complete.
 */
export class Detokenizer {
  readonly #vocabulary: TextVocabulary;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #atStart = true;

  constructor(vocabulary: TextVocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Returns the text that this token completes. Bytes that cannot become a character are replaced by U+FFFD. */
  push(token: number): string {
    return this.#begin(this.#decoder.decode(this.#vocabulary.written(token), { stream: true }));
  }

  /** Returns U+FFFD for an incomplete character at the end; empty if there is none. */
  end(): string {
    return this.#begin(this.#decoder.decode());
  }

  #begin(text: string): string {
    if (!this.#atStart || text === '') return text;
    this.#atStart = false;
    return this.#vocabulary.leadingSpace && text.startsWith(' ') ? text.slice(1) : text;
  }
}
