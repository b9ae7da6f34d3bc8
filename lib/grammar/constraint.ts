/** Provides a model's tokens as bytes, which grammars are matched against. Token ids run from 0 to `size - 1`. */
export interface Vocabulary {
  /** The number of token ids, including those without text. */
  readonly size: number;
  /** Returns the bytes of a token's text; null for control tokens, which no grammar allows. */
  bytes(token: number): Uint8Array | null;
  /**
   * Returns the tokens that the tokenizer gives for a text. Text that looks like a control token is tokenized as plain
   * text.
   */
  encode(text: string): number[];
  /** Tokens that end an answer. */
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
   */
  takeForced(): number[];
  /** Marks the tokens that may come next: bit `t & 31` of word `t >> 5`. Overwrites all of `into`. */
  mask(into: Uint32Array): void;
  /** Accepts a token that `mask` allowed. Throws a RangeError for any other. */
  accept(token: number): void;
  /** Tells whether `accept` would accept this token. */
  accepts(token: number): boolean;
  /**
   * Returns the token that probably comes next, as a draft for speculative decoding; null if there is no likely one.
   * The caller must check it with `accepts`.
   */
  expected(): number | null;
  /** True if the answer is complete and nothing may follow. */
  readonly complete: boolean;
  /** Returns the text so far, both forced and chosen. */
  text(): string;
  /** Length of `text()` in bytes. */
  readonly length: number;
  /**
   * Returns the answer completed to valid JSON, as if it were cut here: a cut string keeps the characters so far, and
   * required members that were not reached are null.
   */
  closed(): string;
  /** Returns an independent copy, for a branch that continues from here. */
  fork(): Constraint;
}
