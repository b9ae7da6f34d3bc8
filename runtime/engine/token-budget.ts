/**
 * Shares the completion tokens of a job among its branches. Earlier branches come first: a branch may choose what the
 * branches before it have not used so far. Branches run side by side, so a branch may have used more than its limit in
 * the end; then its result is cut.
 */
export class TokenBudget {
  readonly #total: number;
  readonly #shares: BudgetShare[] = [];

  /** @param total completion tokens of all branches together */
  constructor(total: number) {
    this.#total = total;
  }

  /** Adds the share of the next branch, which may use at most `maxTokens`. */
  addShare(maxTokens: number): BudgetShare {
    const index = this.#shares.length;
    const share = new BudgetShare(maxTokens, () => this.#leftFor(index));
    this.#shares.push(share);
    return share;
  }

  /** Returns a share outside the budget: it may use `maxTokens`, and takes nothing from the others. */
  unmetered(maxTokens: number): BudgetShare {
    return new BudgetShare(maxTokens, () => maxTokens);
  }

  #leftFor(index: number): number {
    let left = this.#total;
    for (const { used } of this.#shares.slice(0, index)) left -= used;
    return Math.max(0, left);
  }
}

/** Counts the part of the budget that one branch uses. */
export class BudgetShare {
  /** Tokens chosen so far. */
  used = 0;
  readonly #maxTokens: number;
  readonly #left: () => number;

  constructor(maxTokens: number, left: () => number) {
    this.#maxTokens = maxTokens;
    this.#left = left;
  }

  /** Tokens that the branch may choose in all. Shrinks while earlier branches use theirs. */
  get limit(): number {
    return Math.min(this.#maxTokens, this.#left());
  }
}
