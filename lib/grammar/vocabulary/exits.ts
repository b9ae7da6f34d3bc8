import type { State } from '../automaton/automaton.ts';
import type { Trie } from './trie.ts';

/**
 * Holds the tokens that close a string and continue, such as `",`, in a small trie over the bytes after the closing
 * quote. Tokens that differ only before the quote share a node, so finding the allowed ones takes a few steps.
 */
export class Exits {
  readonly tokens: number[] = [];
  private readonly children = new Map<number, Exits>();

  /** Adds the tokens that end at a trie node or below it. The node must be the one directly after a closing quote. */
  add(trie: Trie, node: number): void {
    const { byte, depth, skip, token, same } = trie;
    const path: Exits[] = [];
    const end = skip[node] ?? 0;
    for (let at = node; at < end; at++) {
      const level = depth[at] ?? 0;
      const here = path[level - 1]?.child(byte[at] ?? 0) ?? this;
      path[level] = here;
      for (let id = token[at] ?? -1; id >= 0; id = same[id] ?? -1) here.tokens.push(id);
    }
  }

  private child(byte: number): Exits {
    let child = this.children.get(byte);
    if (!child) {
      child = new Exits();
      this.children.set(byte, child);
    }
    return child;
  }

  /**
   * Calls `found` with the id of every token whose bytes after the closing quote are allowed from the state `after`,
   * and with the number of these bytes.
   */
  walk(after: State, found: (token: number, rest: number) => void): void {
    const open: [Exits, State, number][] = [[this, after, 0]];
    for (let top = open.pop(); top !== undefined; top = open.pop()) {
      const [exits, state, rest] = top;
      for (const token of exits.tokens) found(token, rest);
      for (const [byte, child] of exits.children) {
        const next = state.next(byte);
        if (next) open.push([child, next, rest + 1]);
      }
    }
  }
}
