import type { State } from '../automaton/automaton.ts';
import { isNumeric } from '../automaton/frame.ts';
import type { NumberFrame } from '../automaton/number-frame.ts';
import { mark, type Trie } from './trie.ts';

/** Marks in `into` all tokens below `node` whose bytes after it are allowed from `state`. */
export function walk(trie: Trie, node: number, state: State, into: Uint32Array): void {
  const { byte, depth, skip } = trie;
  const states: State[] = [];
  states[depth[node] ?? 0] = state;
  const end = skip[node] ?? 0;
  for (let at = node + 1; at < end; ) {
    const level = depth[at] ?? 0;
    const next = states[level - 1]?.next(byte[at] ?? 0);
    if (!next) {
      at = skip[at] ?? end;
      continue;
    }
    states[level] = next;
    mark(trie, at, into);
    at++;
  }
}

/**
 * Tells whether the bytes of a token below `node`, those after the node, are allowed from `state`. Only tokens whose
 * first such byte satisfies `first` count.
 */
export function anyBelow(trie: Trie, node: number, state: State, first: (byte: number) => boolean): boolean {
  const { byte, depth, skip, token } = trie;
  const states: State[] = [];
  const top = depth[node] ?? 0;
  states[top] = state;
  const end = skip[node] ?? 0;
  for (let at = node + 1; at < end; ) {
    const level = depth[at] ?? 0;
    const edge = byte[at] ?? 0;
    const next = level > top + 1 || first(edge) ? states[level - 1]?.next(edge) : null;
    if (!next) {
      at = skip[at] ?? end;
      continue;
    }
    if ((token[at] ?? -1) >= 0) return true;
    states[level] = next;
    at++;
  }
  return false;
}

/**
 * Marks in `into` the tokens that continue a number, or that end it and continue after it. Within the number only its
 * text is tracked, so the thousand or so tokens of digits create no automaton states.
 *
 * @param after the state after the number
 */
export function walkNumber(trie: Trie, { language, text }: NumberFrame, after: State, into: Uint32Array): void {
  const { byte, depth, skip, nodes } = trie;
  const texts = [text];
  for (let at = 1; at < nodes; ) {
    const level = depth[at] ?? 0;
    const edge = byte[at] ?? 0;
    const before = texts[level - 1] ?? '';
    if (isNumeric(edge)) {
      const now = before + String.fromCharCode(edge);
      if (language.fits(now)) {
        texts[level] = now;
        mark(trie, at, into);
        at++;
        continue;
      }
    } else if (language.accepts(before)) {
      const next = after.next(edge);
      if (next) {
        mark(trie, at, into);
        walk(trie, at, next, into);
      }
    }
    at = skip[at] ?? nodes;
  }
}
