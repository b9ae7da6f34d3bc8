import type { State } from '../automaton/automaton.ts';
import { isNumeric } from '../automaton/frame.ts';
import type { NumberFrame } from '../automaton/number-frame.ts';
import { mark, type Trie } from './trie.ts';

/** Marks all tokens below `node` whose remaining bytes are allowed from `state`. */
export function walk(trie: Trie, node: number, state: State, into: Uint32Array): void {
  const { byte, depth, skip } = trie;
  const states: State[] = [];
  const top = depth[node]!;
  states[top] = state;
  const end = skip[node]!;
  for (let at = node + 1; at < end; ) {
    const level = depth[at]!;
    const next = states[level - 1]!.next(byte[at]!);
    if (!next) {
      at = skip[at]!;
      continue;
    }
    states[level] = next;
    mark(trie, at, into);
    at++;
  }
}

/** Tells whether a token below `node` is allowed whose next byte passes `first`. */
export function anyBelow(trie: Trie, node: number, state: State, first: (byte: number) => boolean): boolean {
  const { byte, depth, skip, token } = trie;
  const states: State[] = [];
  const top = depth[node]!;
  states[top] = state;
  for (let at = node + 1; at < skip[node]!; ) {
    const level = depth[at]!;
    const next = level > top + 1 || first(byte[at]!) ? states[level - 1]!.next(byte[at]!) : null;
    if (!next) {
      at = skip[at]!;
      continue;
    }
    if (token[at]! >= 0) return true;
    states[level] = next;
    at++;
  }
  return false;
}

/**
 * Marks the tokens that continue a number, or end it and continue after it. Only the number's text is followed, so the
 * thousand tokens that consist of digits create no states.
 *
 * @param after the state after the number
 */
export function walkNumber(trie: Trie, { language, text }: NumberFrame, after: State, into: Uint32Array): void {
  const { byte, depth, skip, nodes } = trie;
  const texts = [text];
  for (let at = 1; at < nodes; ) {
    const before = texts[depth[at]! - 1]!;
    if (isNumeric(byte[at]!)) {
      const now = before + String.fromCharCode(byte[at]!);
      if (language.fits(now)) {
        texts[depth[at]!] = now;
        mark(trie, at, into);
        at++;
        continue;
      }
    } else if (language.accepts(before)) {
      const next = after.next(byte[at]!);
      if (next) {
        mark(trie, at, into);
        walk(trie, at, next, into);
      }
    }
    at = skip[at]!;
  }
}
