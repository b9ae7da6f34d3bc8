import { at } from '../../lib/at.ts';
import { logSumExp } from './sampler.ts';

interface TrieNode {
  token: number;
  /** Index of the node before; -1 for the root. */
  parent: number;
  /** Maps the next token to its node. */
  children: Map<number, number>;
  /** The option that all paths through this node belong to; null: several. */
  option: number | null;
  /** Total log-probability of the tokens up to this node, once it is scored. */
  logprob: number;
}

/** Nodes that are scored together. More are split into parts, so that a long list of long options needs bounded KV. */
const MAX_NODES = 1024;

/**
 * Holds the token paths of all options as one tree. Every node that has children needs the model's distribution once;
 * then each path's log-probability is the exact sum over its tokens, in whatever order they were computed.
 */
export class OptionTrie {
  readonly #paths: readonly (readonly number[])[];
  readonly #options: readonly number[];
  readonly #nodes: TrieNode[];
  /** The node at the end of each path. */
  readonly #ends: number[];

  /** @param options the option of each path; absent: each path is its own option */
  constructor(paths: readonly (readonly number[])[], options: readonly number[] = paths.map((_, path) => path)) {
    this.#paths = paths;
    this.#options = options;
    const [first = null] = options;
    const root = options.every((option) => option === first) ? first : null;
    this.#nodes = [{ token: -1, parent: -1, children: new Map(), option: root, logprob: 0 }];
    this.#ends = paths.map((path, index) => this.#add(path, at(options, index)));
    const distinct = new Set(this.#ends);
    if (distinct.size !== paths.length || this.#ends.some((end) => this.#node(end).children.size > 0)) {
      throw new Error('an option is a prefix of another');
    }
  }

  /** Adds a path and returns its last node. */
  #add(path: readonly number[], option: number): number {
    let last = 0;
    for (const token of path) {
      const { children } = this.#node(last);
      const known = children.get(token);
      if (known === undefined) {
        children.set(token, this.#nodes.length);
        this.#nodes.push({ token, parent: last, children: new Map(), option, logprob: 0 });
      } else {
        const node = this.#node(known);
        if (node.option !== option) node.option = null;
      }
      last = known ?? this.#nodes.length - 1;
    }
    return last;
  }

  #node(index: number): TrieNode {
    return at(this.#nodes, index);
  }

  token(node: number): number {
    return this.#node(node).token;
  }

  parent(node: number): number {
    return this.#node(node).parent;
  }

  /** Returns the node before the last token of a path. */
  nodeBeforeEnd(path: number): number {
    return this.parent(at(this.#ends, path));
  }

  /** Counts the tokens of a path that the model chooses: those at which the paths that are still possible differ. */
  choices(path: number): number {
    return this.#count(path, ({ children }) => children.size > 1);
  }

  /** Counts the chosen tokens that settle the option; the others choose between its endings. */
  settling(path: number): number {
    return this.#count(path, ({ children, option }) => children.size > 1 && option === null);
  }

  /** Returns the first path of the option that a path belongs to. */
  firstPathOf(path: number): number {
    return this.#options.indexOf(at(this.#options, path));
  }

  #count(path: number, counts: (node: TrieNode) => boolean): number {
    let count = 0;
    for (let index = this.nodeBeforeEnd(path); index >= 0; ) {
      const node = this.#node(index);
      if (counts(node)) count++;
      index = node.parent;
    }
    return count;
  }

  /**
   * Returns the nodes to score after the root, in parts of bounded size. Each part holds all ancestors of its options,
   * parents first, so each part can be run from the root.
   */
  parts(): number[][] {
    let part = new Set<number>();
    const parts = [part];
    for (const end of this.#ends) {
      const line: number[] = [];
      for (let node = this.parent(end); node > 0; node = this.parent(node)) line.push(node);
      const added = line.filter((node) => !part.has(node)).length;
      if (part.size > 0 && part.size + added > MAX_NODES) {
        part = new Set();
        parts.push(part);
      }
      for (const node of line.reverse()) part.add(node);
    }
    return parts.map((nodes) => [...nodes]);
  }

  /** Scores the children of a node by the model's distribution after it. Parents come first; 0 is the root. */
  score(node: number, logits: Float32Array): void {
    const normaliser = logSumExp(logits);
    const { children, logprob } = this.#node(node);
    for (const [token, child] of children) this.#node(child).logprob = logprob + at(logits, token) - normaliser;
  }

  /** Returns the total log-probability of each path. All nodes must be scored. */
  logprobs(): number[] {
    return this.#ends.map((end) => this.#node(end).logprob);
  }

  /**
   * Returns the likeliest path of the likeliest option, the first on a tie. An option counts with all its endings
   * together: the question is for the option, not for its ending.
   *
   * @param logprobs those of `logprobs()`
   */
  best(logprobs: readonly number[]): number {
    const endings = new Map<number, number[]>();
    for (const [path, option] of this.#options.entries()) endings.set(option, [...(endings.get(option) ?? []), path]);
    let best = { path: 0, total: Number.NEGATIVE_INFINITY };
    for (const paths of endings.values()) {
      const path = paths.reduce((one, other) => (at(logprobs, other) > at(logprobs, one) ? other : one));
      const highest = at(logprobs, path);
      const total = highest + Math.log(paths.reduce((sum, each) => sum + Math.exp(at(logprobs, each) - highest), 0));
      if (total > best.total) best = { path, total };
    }
    return best.path;
  }

  path(path: number): readonly number[] {
    return at(this.#paths, path);
  }
}

/** Turns log-probabilities of whole paths into probabilities that add up to 1. */
export function normalise(logprobs: readonly number[]): number[] {
  const highest = Math.max(...logprobs);
  const weights = logprobs.map((logprob) => Math.exp(logprob - highest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}
