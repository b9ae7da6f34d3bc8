import type { TextVocabulary } from './vocabulary.ts';

/** Turns a stream of tokens into text. If several tokens spell a character, holds back its bytes until it is whole. */
export class Detokenizer {
  readonly #vocabulary: TextVocabulary;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #atStart = true;

  constructor(vocabulary: TextVocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Returns the text that this token completes. Bytes that cannot become a character become U+FFFD. */
  push(token: number): string {
    return this.#begin(this.#decoder.decode(this.#vocabulary.written(token), { stream: true }));
  }

  /** Returns the rest of an unfinished character. */
  end(): string {
    return this.#begin(this.#decoder.decode());
  }

  #begin(text: string): string {
    if (!this.#atStart || text === '') return text;
    this.#atStart = false;
    return this.#vocabulary.leadingSpace && text.startsWith(' ') ? text.slice(1) : text;
  }
}
