/** Holds the thresholds at which tokens count as a loop. */
export interface LoopBounds {
  /** Number of latest tokens that are examined. */
  tokens: number;
  /**
   * Number of tokens in one n-gram: so many that lists of a few labels in changing order keep producing new n-grams.
   * Two labels have only 16 sequences of four, but 65,536 of sixteen.
   */
  n: number;
  /** Largest number of different n-grams among these tokens that counts as a loop. */
  distinct: number;
}

/**
 * Detects that a model repeats itself: the latest tokens have few distinct n-grams. Unlike a search for an exact
 * period, this also finds loops that change slowly. The measure is "distinct-n" (Li et al. 2016, "A Diversity-Promoting
 * Objective Function").
 */
export class LoopDetector {
  readonly #bounds: LoopBounds;
  /** The latest tokens, at most `n - 1`, which begin the next n-gram. */
  #tail: number[] = [];
  /** The n-grams of the latest tokens, oldest first. */
  #grams: string[] = [];
  /** Number of times that each n-gram is in `#grams`. */
  #counts = new Map<string, number>();

  constructor(bounds: LoopBounds) {
    this.#bounds = bounds;
  }

  /** True if the latest tokens repeat themselves. Always false until `LoopBounds.tokens` tokens have been pushed. */
  get looping(): boolean {
    return this.#grams.length === this.#most && this.#counts.size <= this.#bounds.distinct;
  }

  /** Number of n-grams in the tokens that are examined. */
  get #most(): number {
    return this.#bounds.tokens - this.#bounds.n + 1;
  }

  /** Adds the next token. */
  push(token: number): void {
    this.#tail.push(token);
    if (this.#tail.length < this.#bounds.n) return;
    const gram = this.#tail.join();
    this.#tail.shift();
    this.#grams.push(gram);
    this.#counts.set(gram, (this.#counts.get(gram) ?? 0) + 1);
    if (this.#grams.length > this.#most) this.#forget(this.#grams.shift()!);
  }

  /** Forgets all tokens, as if none had been pushed. */
  clear(): void {
    this.#tail = [];
    this.#grams = [];
    this.#counts.clear();
  }

  /** Returns an independent copy. */
  fork(): LoopDetector {
    const copy = new LoopDetector(this.#bounds);
    copy.#tail = [...this.#tail];
    copy.#grams = [...this.#grams];
    copy.#counts = new Map(this.#counts);
    return copy;
  }

  #forget(gram: string): void {
    const left = this.#counts.get(gram)! - 1;
    if (left === 0) this.#counts.delete(gram);
    else this.#counts.set(gram, left);
  }
}
