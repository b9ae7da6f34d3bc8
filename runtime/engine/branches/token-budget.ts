/**
 * Shares a job's completion tokens among its branches. Earlier branches come first: a branch may use what the branches
 * before it have not used so far. Branches run side by side, so in the end a branch may have used more than its limit;
 * its result is then cut.
 */
export class TokenBudget {
  readonly #total: number;
  readonly #shares: BudgetShare[] = [];

  /** @param total maximum number of completion tokens of all shares from `addShare` together */
  constructor(total: number) {
    this.#total = total;
  }

  /** Adds and returns the share of the next branch, which may use at most `maxTokens`. */
  addShare(maxTokens: number): BudgetShare {
    const index = this.#shares.length;
    const share = new BudgetShare(maxTokens, () => this.#leftFor(index));
    this.#shares.push(share);
    return share;
  }

  /** Returns a share that does not count against the budget: only `maxTokens` limits it. */
  unmetered(maxTokens: number): BudgetShare {
    return new BudgetShare(maxTokens, () => maxTokens);
  }

  #leftFor(index: number): number {
    let left = this.#total;
    for (const { used } of this.#shares.slice(0, index)) left -= used;
    return Math.max(0, left);
  }
}

/** Counts the tokens that one branch has chosen, against the limit that the budget leaves for it. */
export class BudgetShare {
  /** Number of tokens that the branch has chosen so far. */
  used = 0;
  readonly #maxTokens: number;
  readonly #left: () => number;

  constructor(maxTokens: number, left: () => number) {
    this.#maxTokens = maxTokens;
    this.#left = left;
  }

  /** Maximum number of tokens that the branch may choose in all. Shrinks while earlier branches use theirs. */
  get limit(): number {
    return Math.min(this.#maxTokens, this.#left());
  }
}
