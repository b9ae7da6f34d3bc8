import type { Constraint } from '../../lib/grammar/constraint.ts';
import type { BranchSpec, JobSpec } from '../../runtime/engine/job-spec.ts';

/** The oracle's result for a branch: the parts of `BranchResult` that do not depend on how it was computed. */
export interface OracleBranch {
  option: number | null;
  logprobs: number[] | null;
  tokens: number[];
  /** The log-probability of each chosen token among those that the constraint allows; empty without a constraint. */
  choices: number[];
  chosen: number;
  reason: 'stop' | 'length';
}

/** Returns the logits after every token of a text, computed in one run without a cache. */
export interface PlainModel {
  logits(tokens: readonly number[]): Promise<Float32Array[]>;
  close(): Promise<void>;
}

/**
 * Decodes as simply as possible: the whole text through the model for every single token, one branch after the other;
 * no cache, no packing. Greedy only. Slow, and the reference for the engine's answers.
 */
export class Oracle {
  readonly #model: PlainModel;
  /** The smallest gap between the best and the second-best choice since it was last reset: near-ties prove nothing. */
  gap = Number.POSITIVE_INFINITY;

  constructor(model: PlainModel) {
    this.#model = model;
  }

  async answer(job: JobSpec, contextLength: number): Promise<OracleBranch[]> {
    const answers: OracleBranch[] = [];
    let budget = job.budget;
    for (const branch of job.branches) {
      const answer = await this.#branch([...job.prefix, ...branch.suffix], branch, budget, contextLength);
      budget -= answer.chosen;
      answers.push(answer);
    }
    return answers;
  }

  async #branch(start: number[], branch: BranchSpec, budget: number, contextLength: number): Promise<OracleBranch> {
    const limit = Math.min(branch.maxTokens, budget);
    if (!branch.choice) return this.#speak(start, branch, branch.constraint?.fork() ?? null, limit, 0, contextLength);
    const { paths, after } = branch.choice;
    const longest = Math.max(...paths.map((path) => path.length));
    const unsettled = (chosen: number): OracleBranch => ({
      option: null,
      logprobs: null,
      tokens: [],
      choices: [],
      chosen,
      reason: 'length',
    });
    if (paths.length > 1 && (limit <= 0 || start.length + longest > contextLength)) return unsettled(0);
    const logprobs: number[] = [];
    for (const path of paths) logprobs.push(paths.length === 1 ? 0 : await this.#logprob(start, path));
    const option = this.#best(logprobs, () => true);
    const choices = paths[option]!.filter((_, at) => differ(paths, paths[option]!, at)).length;
    if (choices > limit) return unsettled(Math.max(0, limit));
    const next = after?.(option) ?? null;
    const chosen = { option, logprobs, tokens: [] as number[], choices: [], chosen: choices, reason: 'stop' as const };
    if (!next || next.complete) return chosen;
    const spoken = await this.#speak([...start, ...paths[option]!], branch, next, limit, choices, contextLength);
    return { ...spoken, option, logprobs };
  }

  async #speak(
    start: number[],
    branch: BranchSpec,
    constraint: Constraint | null,
    limit: number,
    alreadyChosen: number,
    contextLength: number,
  ): Promise<OracleBranch> {
    const tokens: number[] = [];
    const scores: number[] = [];
    let chosen = alreadyChosen;
    const end = (reason: 'stop' | 'length'): OracleBranch => ({
      option: null,
      logprobs: null,
      tokens,
      choices: scores,
      chosen,
      reason,
    });
    for (;;) {
      tokens.push(...(constraint?.takeForced() ?? []));
      if (constraint?.complete) return end('stop');
      if (chosen >= limit) return end('length');
      const text = [...start, ...tokens];
      if (text.length > contextLength) return end('length');
      const logits = (await this.#model.logits(text)).at(-1)!;
      const mask = new Uint32Array(Math.ceil(logits.length / 32));
      constraint?.mask(mask);
      const isAllowed = (id: number) => !constraint || (mask[id >> 5]! & (1 << (id & 31))) !== 0;
      const token = this.#best(Array.from(logits), isAllowed);
      if (branch.endTokens.has(token)) return end('stop');
      if (constraint) {
        const allowed = logits.map((logit, id) => (isAllowed(id) ? logit : Number.NEGATIVE_INFINITY));
        scores.push(logSoftmax(allowed, token));
      }
      tokens.push(token);
      chosen++;
      constraint?.accept(token);
    }
  }

  async #logprob(start: number[], path: readonly number[]): Promise<number> {
    const logits = await this.#model.logits([...start, ...path]);
    return path.reduce((sum, token, at) => sum + logSoftmax(logits[start.length - 1 + at]!, token), 0);
  }

  #best(values: readonly number[], allowed: (index: number) => boolean): number {
    const order = values.map((_, index) => index).filter(allowed);
    order.sort((a, b) => values[b]! - values[a]! || a - b);
    if (order.length > 1) this.gap = Math.min(this.gap, values[order[0]!]! - values[order[1]!]!);
    return order[0]!;
  }
}

/** Tells whether the paths that agree with `path` up to `at` continue differently there. */
function differ(paths: readonly (readonly number[])[], path: readonly number[], at: number): boolean {
  const same = paths.filter((other) => path.slice(0, at).every((token, index) => other[index] === token));
  return new Set(same.map((other) => other[at])).size > 1;
}

function logSoftmax(logits: Float32Array, token: number): number {
  const highest = logits.reduce((a, b) => Math.max(a, b));
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - highest), 0);
  return logits[token]! - highest - Math.log(sum);
}
