/** Provides the tokens of a model as bytes, which grammars are matched against. Token ids run from 0 to `size - 1`. */
export interface Vocabulary {
  /** The number of token ids, including those without text. */
  readonly size: number;
  /**
   * Returns the UTF-8 bytes of a token's text, which may end within a character; null for control tokens, which no
   * grammar allows.
   */
  bytes(token: number): Uint8Array | null;
  /**
   * Returns the ids of the tokens that the tokenizer gives for a text. Text that looks like a control token is
   * tokenized as plain text.
   */
  encode(text: string): number[];
  /** Ids of the tokens that end an answer. */
  readonly end: ReadonlySet<number>;
}

/**
 * Tells which tokens may come next in one answer. An instance is mutable and belongs to one branch of a batch. The
 * engine knows nothing about JSON; it uses only this interface.
 */
export interface Constraint {
  /**
   * Returns the tokens that must come next, whatever the model prefers, and accepts them. Empty if the model has a
   * choice, or at the end.
   *
   * @throws AssayError `engine_failed` if the vocabulary has no tokens for the text that must come next
   */
  takeForced(): number[];
  /**
   * Marks the tokens that may come next: bit `t & 31` of word `t >> 5`. Overwrites all of `into`.
   *
   * @throws AssayError `engine_failed` if the vocabulary has no token that may come next
   */
  mask(into: Uint32Array): void;
  /** Accepts a token as the next one. Throws a RangeError if the grammar does not allow it (`accepts`). */
  accept(token: number): void;
  /**
   * Tells whether the grammar allows this token next. `mask` may mark fewer tokens, to end a string that repeats
   * itself.
   */
  accepts(token: number): boolean;
  /**
   * Returns the id of the token that probably comes next, as a draft for speculative decoding; null if there is no
   * likely one. The caller must check it with `accepts`.
   */
  expected(): number | null;
  /** True if the answer is complete, so that only a token of `Vocabulary.end` may follow. */
  readonly complete: boolean;
  /** Returns the text so far, both forced and chosen. */
  text(): string;
  /** Length of `text()` in bytes. */
  readonly length: number;
  /**
   * Returns the text of the answer as if it were cut here, completed to valid JSON: a cut string keeps the characters
   * so far, and required members that were not reached are null.
   */
  closed(): string;
  /** Returns an independent copy, for a branch that continues from here. */
  fork(): Constraint;
}
