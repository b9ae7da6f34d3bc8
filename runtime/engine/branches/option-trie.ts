import { at } from '../../../lib/at.ts';
import { logSumExp } from './sampler.ts';

interface TrieNode {
  token: number;
  /** Index of the node of the preceding token; -1 for the root. */
  parent: number;
  /** Index of the node of each possible next token, by token id. */
  children: Map<number, number>;
  /** Index of the option to which all paths through this node belong; null if they belong to several. */
  option: number | null;
  /** Total log-probability of the tokens from the root to this node, once it is scored. */
  logprob: number;
}

/**
 * Maximum number of nodes to score together: with the root, as many as fit in a run. A larger tree is split into parts,
 * which bounds the KV of many long options, and the cells that attention computes for each of them.
 */
const MAX_NODES = 255;

/**
 * Holds the token paths of all options as one tree. Once `score` has been called for every node with children, parents
 * first, `logprobs` returns the exact log-probability of each path.
 */
export class OptionTrie {
  readonly #paths: readonly (readonly number[])[];
  readonly #options: readonly number[];
  readonly #nodes: TrieNode[];
  /** Index of the last node of each path. */
  readonly #ends: number[];

  /**
   * @param paths token ids of each path; throws if one equals or begins another
   * @param options index of the option of each path; by default, each path is its own option
   */
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

  /** Adds a path and returns the index of its last node. */
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

  /** Returns the index of the parent of a path's last node: the last node whose logits the path needs. */
  nodeBeforeEnd(path: number): number {
    return this.parent(at(this.#ends, path));
  }

  /**
   * Returns the number of tokens of a path that the model chooses: those at which the paths that are still possible
   * differ.
   */
  choices(path: number): number {
    return this.#count(path, ({ children }) => children.size > 1);
  }

  /**
   * Returns how many of the `choices` of a path are made while several options are still possible. The others are
   * between endings of the path's option.
   */
  settling(path: number): number {
    return this.#count(path, ({ children, option }) => children.size > 1 && option === null);
  }

  /** Returns the index of the first path that belongs to the same option as `path`. */
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
   * Returns the indexes of the nodes below the root that have children, in parts of at most `MAX_NODES` (more only if a
   * single path is longer). A part contains all ancestors of its nodes, parents first, so each part can be run on its
   * own after the root. A node may be in several parts.
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

  /** Tells whether a part is a single path of more nodes than two paths of a part can have. */
  isLongLine(part: readonly number[]): boolean {
    return part.length > MAX_NODES / 2 && part.every((node, i) => this.parent(node) === (part[i - 1] ?? 0));
  }

  /**
   * Scores the children of a node from the logits after it. The log-probability of the node itself must be known: it is
   * 0 for the root (node 0), and set by scoring the parent for all others. Throws if `logSumExp(logits)` is not finite,
   * as when all logits are NaN.
   */
  score(node: number, logits: Float32Array): void {
    const normaliser = logSumExp(logits);
    if (!Number.isFinite(normaliser)) throw new Error('the logits are not numbers');
    const { children, logprob } = this.#node(node);
    for (const [token, child] of children) this.#node(child).logprob = logprob + at(logits, token) - normaliser;
  }

  /**
   * Returns the total log-probability of each path, in the order of the paths. All nodes with children must be scored
   * before.
   */
  logprobs(): number[] {
    return this.#ends.map((end) => this.#node(end).logprob);
  }

  /**
   * Returns the index of the most probable path of the most probable option, the first on a tie. The probability of an
   * option is the sum over its endings, because the question is about the option and not its ending.
   *
   * @param logprobs result of `logprobs()`
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

/** Converts log-probabilities of whole paths into probabilities that add up to 1. */
export function normalise(logprobs: readonly number[]): number[] {
  const highest = Math.max(...logprobs);
  const weights = logprobs.map((logprob) => Math.exp(logprob - highest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}
