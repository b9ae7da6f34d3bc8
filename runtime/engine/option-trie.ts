import { logSumExp } from './sampler.ts';

interface TrieNode {
  token: number;
  /** Index of the node before; -1 for the root. */
  parent: number;
  children: Map<number, number>;
  /** The option that all paths through this node belong to; null: several. */
  option: number | null;
}

/** Nodes that are scored together; more are taken in parts, so that a long list of long options needs bounded KV. */
const MAX_NODES = 1024;

/**
 * The token paths of all options as one tree. Every node that has children needs the model's distribution once; then each
 * path's log-probability is the exact sum over its tokens, whatever order they were computed in.
 */
export class OptionTrie {
  readonly #paths: readonly (readonly number[])[];
  readonly #options: readonly number[];
  readonly #nodes: TrieNode[];
  readonly #scores: number[] = [0];
  /** The node at the end of each path. */
  readonly #ends: number[];

  /** @param options the option of each path; absent: each path is one of its own */
  constructor(paths: readonly (readonly number[])[], options: readonly number[] = paths.map((_, path) => path)) {
    this.#paths = paths;
    this.#options = options;
    const root = options.every((option) => option === options[0]) ? options[0]! : null;
    this.#nodes = [{ token: -1, parent: -1, children: new Map(), option: root }];
    this.#ends = paths.map((path, i) => {
      let at = 0;
      for (const token of path) {
        const known = this.#nodes[at]!.children.get(token);
        if (known === undefined) {
          this.#nodes.push({ token, parent: at, children: new Map(), option: options[i]! });
          this.#nodes[at]!.children.set(token, this.#nodes.length - 1);
        } else if (this.#nodes[known]!.option !== options[i]) this.#nodes[known]!.option = null;
        at = known ?? this.#nodes.length - 1;
      }
      return at;
    });
    const distinct = new Set(this.#ends);
    if (distinct.size !== paths.length || this.#ends.some((end) => this.#nodes[end]!.children.size > 0)) {
      throw new Error('an option is a prefix of another');
    }
  }

  token(node: number): number {
    return this.#nodes[node]!.token;
  }

  parent(node: number): number {
    return this.#nodes[node]!.parent;
  }

  /** The node before the last token of a path. */
  nodeBeforeEnd(path: number): number {
    return this.parent(this.#ends[path]!);
  }

  /** How many tokens of a path the model chooses: where the paths that are still possible differ. */
  choices(path: number): number {
    return this.#count(path, ({ children }) => children.size > 1);
  }

  /** How many of them settle the option: the others choose between its endings. */
  settling(path: number): number {
    return this.#count(path, ({ children, option }) => children.size > 1 && option === null);
  }

  /** The first path of the option that a path belongs to. */
  plainest(path: number): number {
    return this.#options.indexOf(this.#options[path]!);
  }

  #count(path: number, counts: (node: TrieNode) => boolean): number {
    let count = 0;
    for (let at = this.nodeBeforeEnd(path); at >= 0; at = this.parent(at)) if (counts(this.#nodes[at]!)) count++;
    return count;
  }

  /**
   * The nodes to be scored after the root, in parts of bounded size. Each part holds what its options descend from, parents
   * first, so parts can be run one after the other from the root.
   */
  parts(): number[][] {
    const parts: Set<number>[] = [new Set()];
    for (const end of this.#ends) {
      const line: number[] = [];
      for (let at = this.parent(end); at > 0; at = this.parent(at)) line.push(at);
      const fresh = line.filter((node) => !parts.at(-1)!.has(node)).length;
      if (parts.at(-1)!.size > 0 && parts.at(-1)!.size + fresh > MAX_NODES) parts.push(new Set());
      for (const node of line.reverse()) parts.at(-1)!.add(node);
    }
    return parts.map((part) => [...part]);
  }

  /** Takes in the model's distribution behind a node; its parent's comes first. 0 is the root. */
  score(node: number, logits: Float32Array): void {
    const normaliser = logSumExp(logits);
    for (const [token, child] of this.#nodes[node]!.children) {
      this.#scores[child] = this.#scores[node]! + logits[token]! - normaliser;
    }
  }

  /** The total log-probability of each path, when all nodes are scored. */
  logprobs(): number[] {
    return this.#ends.map((end) => this.#scores[end]!);
  }

  /**
   * The likeliest path of the likeliest option, the first on a tie. What an option's endings have counts together: it is the option that is
   * asked for, not how it goes on.
   *
   * @param logprobs those of `logprobs()`
   */
  best(logprobs: readonly number[]): number {
    const endings = new Map<number, number[]>();
    for (const [path, option] of this.#options.entries()) endings.set(option, [...(endings.get(option) ?? []), path]);
    let best = { path: 0, total: Number.NEGATIVE_INFINITY };
    for (const paths of endings.values()) {
      const path = paths.reduce((one, other) => (logprobs[other]! > logprobs[one]! ? other : one));
      const highest = logprobs[path]!;
      const total = highest + Math.log(paths.reduce((sum, each) => sum + Math.exp(logprobs[each]! - highest), 0));
      if (total > best.total) best = { path, total };
    }
    return best.path;
  }

  path(path: number): readonly number[] {
    return this.#paths[path]!;
  }
}

/** Log-probabilities of whole paths as probabilities among them. */
export function normalise(logprobs: readonly number[]): number[] {
  const highest = Math.max(...logprobs);
  const weights = logprobs.map((logprob) => Math.exp(logprob - highest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}
