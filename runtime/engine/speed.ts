/** Weight of the newest measurement. */
const RECENT = 0.2;
/** Runs with at least this many new tokens count as prompt, smaller ones as steps. */
const PROMPT_RUN = 64;

/** How fast this machine runs the loaded model, from the runs so far. */
export class Speed {
  #msPerPromptToken = 2;
  #msPerStep = 50;

  record(tokens: number, ms: number): void {
    if (tokens >= PROMPT_RUN) this.#msPerPromptToken += RECENT * (ms / tokens - this.#msPerPromptToken);
    else this.#msPerStep += RECENT * (ms - this.#msPerStep);
  }

  /** Milliseconds that some work will take, branches `side by side`. */
  estimate({ prompt, choices }: { prompt: number; choices: number }, sideBySide: number): number {
    return prompt * this.#msPerPromptToken + (choices / Math.max(1, sideBySide)) * this.#msPerStep;
  }
}
