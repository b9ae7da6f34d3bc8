import type { Vocabulary } from '../constraint.ts';
import { clearBit, setBit } from './token-mask.ts';

/**
 * Holds the tokens of a vocabulary in a trie over their bytes, laid out in preorder: the descendants of node `n` are `n
 * + 1` up to `skip[n]`. Node 0 is the root. A walk is one pass over flat arrays.
 */
export interface Trie {
  readonly nodes: number;
  /** `byte[n]`: the byte that leads from the parent of node n to node n. */
  readonly byte: Uint8Array;
  /** `depth[n]`: the number of bytes from the root to node n. */
  readonly depth: Uint16Array;
  /** `skip[n]`: the first node after the descendants of node n. */
  readonly skip: Int32Array;
  /** `token[n]`: a token that ends at node n; -1 if there is none. */
  readonly token: Int32Array;
  /** `same[t]`: another token with the same bytes as token t; -1 if there is none. */
  readonly same: Int32Array;
  /** Length in bytes of the longest token in the trie. */
  readonly deepest: number;
}

/** Bytes of the longest token that is used. Longer ones (runs of spaces and the like) are never chosen. */
const LONGEST_TOKEN = 128;

/**
 * Builds the trie of a vocabulary, without end tokens and tokens over 128 bytes. Takes about 0.3 s for 150,000 tokens;
 * `masksOf` does it once for each vocabulary.
 */
export function buildTrie(vocabulary: Vocabulary): Trie {
  const tokens: { id: number; bytes: Uint8Array; beginning: number }[] = [];
  for (let id = 0; id < vocabulary.size; id++) {
    const bytes = vocabulary.end.has(id) ? null : vocabulary.bytes(id);
    if (bytes && bytes.length > 0 && bytes.length <= LONGEST_TOKEN)
      tokens.push({ id, bytes, beginning: beginningOf(bytes) });
  }
  // Most tokens differ in their first six bytes, and numbers compare fastest.
  tokens.sort((a, b) => a.beginning - b.beginning || compare(a.bytes, b.bytes) || a.id - b.id);
  let most = 1;
  for (const { bytes } of tokens) most += bytes.length;
  const byte = new Uint8Array(most);
  const depth = new Uint16Array(most);
  const skip = new Int32Array(most);
  const token = new Int32Array(most).fill(-1);
  const same = new Int32Array(vocabulary.size).fill(-1);
  // The nodes from the root to the last token, whose beginning the next one may share.
  const path = [0];
  let nodes = 1;
  let before: Uint8Array = new Uint8Array();
  let deepest = 0;
  for (const { id, bytes } of tokens) {
    let shared = 0;
    while (shared < before.length && shared < bytes.length && before[shared] === bytes[shared]) shared++;
    while (path.length > shared + 1) skip[path.pop() ?? 0] = nodes;
    for (let at = shared; at < bytes.length; at++) {
      byte[nodes] = bytes[at] ?? 0;
      depth[nodes] = at + 1;
      path.push(nodes++);
    }
    const end = path.at(-1) ?? 0;
    same[id] = token[end] ?? -1;
    token[end] = id;
    deepest = Math.max(deepest, bytes.length);
    before = bytes;
  }
  for (const node of path) skip[node] = nodes;
  return {
    nodes,
    byte: byte.slice(0, nodes),
    depth: depth.slice(0, nodes),
    skip: skip.slice(0, nodes),
    token: token.slice(0, nodes),
    same,
    deepest,
  };
}

/** Returns the first six bytes as one number, which sorts like the bytes. */
function beginningOf(bytes: Uint8Array): number {
  let beginning = 0;
  for (let i = 0; i < 6; i++) beginning = beginning * 256 + (bytes[i] ?? 0);
  return beginning;
}

function compare(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return (a[i] ?? 0) - (b[i] ?? 0);
  return a.length - b.length;
}

/** Returns the node to which these bytes lead from the root; -1 if no token begins with them. */
export function descend(trie: Trie, bytes: Uint8Array): number {
  let node = 0;
  for (const byte of bytes) {
    node = childOf(trie, node, byte);
    if (node < 0) return -1;
  }
  return node;
}

/** Returns the node after a byte; -1 if no token continues with it. */
export function childOf({ byte, skip }: Trie, node: number, wanted: number): number {
  const end = skip[node] ?? 0;
  let child = node + 1;
  while (child < end && byte[child] !== wanted) child = skip[child] ?? end;
  return child < end ? child : -1;
}

/** Marks the tokens that end at a node as allowed in the mask `into`. */
export function mark({ token, same }: Trie, node: number, into: Uint32Array): void {
  for (let id = token[node] ?? -1; id >= 0; id = same[id] ?? -1) setBit(into, id);
}

/** Marks the tokens that end at a node as not allowed in the mask `into`. */
export function unmark({ token, same }: Trie, node: number, into: Uint32Array): void {
  for (let id = token[node] ?? -1; id >= 0; id = same[id] ?? -1) clearBit(into, id);
}

/**
 * Returns the ids of tokens that spell a text, each the longest that fits next. Throws a RangeError if no token begins
 * with the bytes that come next.
 */
export function longestTokens(trie: Trie, text: Uint8Array): number[] {
  const tokens: number[] = [];
  for (let from = 0; from < text.length; ) {
    let node = 0;
    let best = -1;
    let end = from;
    for (const [i, byte] of text.subarray(from, from + trie.deepest).entries()) {
      node = childOf(trie, node, byte);
      if (node < 0) break;
      const token = trie.token[node] ?? -1;
      if (token >= 0) {
        best = token;
        end = from + i + 1;
      }
    }
    if (best < 0) throw new RangeError('no token writes this text');
    tokens.push(best);
    from = end;
  }
  return tokens;
}
