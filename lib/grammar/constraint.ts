/** The model's vocabulary as bytes: what grammars are walked against. Token ids index it. */
export interface Vocabulary {
  /** Number of token ids, also those without text. */
  readonly size: number;
  /** The bytes a token writes; null for control tokens, which no grammar ever allows. */
  bytes(token: number): Uint8Array | null;
  /** Canonical tokens of plain text; text that looks like a control token stays text. */
  encode(text: string): number[];
  /** Tokens that end an answer. */
  readonly end: ReadonlySet<number>;
}

/** What one generation may still say. Mutable, owned by one branch; the engine knows nothing of JSON. */
export interface Constraint {
  /**
   * Tokens that must come next, whatever the model would say; taken, so the state is behind them afterwards. Empty where the
   * model has a choice, or nothing is left to say.
   */
  takeForced(): number[];
  /** Marks the tokens that may come next: bit `t & 31` of word `t >> 5`. Overwrites all of `into`. */
  mask(into: Uint32Array): void;
  /** Goes on with a token that `mask` allowed; throws on any other. */
  accept(token: number): void;
  /** Nothing may follow: the answer is whole. */
  readonly complete: boolean;
  /** The bytes so far, forced and chosen. */
  text(): string;
  /** How many bytes `text()` holds. */
  readonly length: number;
  /** The whole answer if it ends here: valid JSON, cut strings as far as they got, members not reached null. */
  closed(): string;
  fork(): Constraint;
}
