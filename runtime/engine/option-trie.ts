import { logSumExp } from './sampler.ts';

interface TrieNode {
  token: number;
  /** Index of the node before; -1 for the root. */
  parent: number;
  children: Map<number, number>;
}

/** Nodes that are scored together; more are taken in parts, so that a long list of long options needs bounded KV. */
const MAX_NODES = 1024;

/**
 * The token paths of all options as one tree. Every node that has children needs the model's distribution once; then each
 * path's log-probability is the exact sum over its tokens, whatever order they were computed in.
 */
export class OptionTrie {
  readonly #paths: readonly (readonly number[])[];
  readonly #nodes: TrieNode[] = [{ token: -1, parent: -1, children: new Map() }];
  readonly #scores: number[] = [0];
  /** The node at the end of each path. */
  readonly #ends: number[];

  constructor(paths: readonly (readonly number[])[]) {
    this.#paths = paths;
    this.#ends = paths.map((path) => {
      let at = 0;
      for (const token of path) {
        const known = this.#nodes[at]!.children.get(token);
        if (known === undefined) {
          this.#nodes.push({ token, parent: at, children: new Map() });
          this.#nodes[at]!.children.set(token, this.#nodes.length - 1);
        }
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

  /** The node before the last token of an option. */
  nodeBeforeEnd(option: number): number {
    return this.parent(this.#ends[option]!);
  }

  /** How many tokens of an option the model chooses: where the paths that are still possible differ. */
  choices(option: number): number {
    let count = 0;
    for (let at = this.parent(this.#ends[option]!); at >= 0; at = this.parent(at)) {
      if (this.#nodes[at]!.children.size > 1) count++;
    }
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

  /** The total log-probability of each option, when all nodes are scored. */
  logprobs(): number[] {
    return this.#ends.map((end) => this.#scores[end]!);
  }

  path(option: number): readonly number[] {
    return this.#paths[option]!;
  }
}

/** Log-probabilities of whole paths as probabilities among them. */
export function normalise(logprobs: readonly number[]): number[] {
  const highest = Math.max(...logprobs);
  const weights = logprobs.map((logprob) => Math.exp(logprob - highest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}
