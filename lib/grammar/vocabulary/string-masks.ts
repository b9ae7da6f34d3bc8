import { at } from '../../at.ts';
import type { State } from '../automaton/automaton.ts';
import { idOf } from '../automaton/frame.ts';
import { type Advance, advance, advanceRaw, type Place } from '../automaton/string-frame.ts';
import { PLAIN } from '../automaton/text-bytes.ts';
import { Fuel } from '../fuel.ts';
import { StringLanguage } from '../text/string-language.ts';
import { mark, type Trie } from './trie.ts';

/** Holds the tokens that are allowed at one position in a string. It does not depend on what surrounds the string. */
export interface StringMask {
  /** Mask of the tokens that stay inside the string. */
  inside: Uint32Array;
  /** Sets of tokens that close the string, each allowed if its bytes after the quote are; empty for raw text. */
  exits: readonly Exits[];
}

/** Maximum number of masks that are cached for one vocabulary; each takes 19 kB for 150,000 tokens. */
const MOST_MASKS = 1_000;
/**
 * Maximum number of sets of closing tokens that are cached. A set takes a few hundred kB, but nearly all positions
 * share one.
 */
const MOST_EXITS = 50;

/**
 * Computes the masks of string positions on first use and caches them. For free text, by far the most common case, the
 * tokens are sorted once by their number of characters; the mask for any bound on the length is then a look-up.
 */
export class StringMasks {
  readonly #trie: Trie;
  readonly #words: number;
  readonly #masks = new Map<string, StringMask>();
  readonly #exits = new Map<string, Exits>();
  #free: FreeText | undefined;

  constructor(trie: Trie, vocabularySize: number) {
    this.#trie = trie;
    this.#words = Math.ceil(vocabularySize / 32);
  }

  /** Returns the tokens that are allowed at a position in a JSON string of this language. */
  at(language: StringLanguage, place: Readonly<Place>): StringMask {
    if (!language.dfa && place.pending === PLAIN) {
      this.#free ??= new FreeText(this.#trie, this.#words);
      return this.#free.at(language.min - place.length, language.max - place.length);
    }
    const shared = this.#shared(language, place);
    return cached(this.#masks, MOST_MASKS, this.#keyOf(language, shared), () => this.#compute(language, shared));
  }

  /**
   * Returns the mask of the tokens that stay inside raw text, which has no quotes and escapes. A token that contains
   * the end of the text and the beginning of the closing tag is included only if the text could also continue with it;
   * shorter tokens can write the same.
   */
  insideRaw(language: StringLanguage, place: Readonly<Place>): Uint32Array {
    const shared = this.#shared(language, place);
    const key = `raw ${this.#keyOf(language, shared)}`;
    return cached(this.#masks, MOST_MASKS, key, () => this.#compute(language, shared, advanceRaw)).inside;
  }

  /** Returns the tokens after which a string is nearer to its shortest end than at `place`. */
  nearerEnd(language: StringLanguage, place: Readonly<Place>): Uint32Array {
    const mask = new Uint32Array(this.#words);
    const rest = language.rest(place.state, place.length);
    walkString(this.#trie, language, place, (node, { state, length, pending }, closes) => {
      if (!closes && pending === PLAIN && language.rest(state, length) < rest) mark(this.#trie, node, mask);
    });
    return mask;
  }

  /**
   * Returns a position with the same mask. All positions too far from the maximum length for a token to reach it share
   * one.
   */
  #shared(language: StringLanguage, place: Readonly<Place>): Readonly<Place> {
    const { min, max, longestRest } = language;
    const far = place.length >= min && place.length + this.#trie.deepest + longestRest <= max;
    return far ? { ...place, length: min } : place;
  }

  #keyOf(language: StringLanguage, { state, length, pending }: Readonly<Place>): string {
    // The language of a format is shared by all schemas, and so are its masks.
    return `${idOf(language)},${state},${length},${pending}`;
  }

  #compute(language: StringLanguage, start: Readonly<Place>, move = advance): StringMask {
    const inside = new Uint32Array(this.#words);
    const closing: number[] = [];
    const visit = (node: number, _: Readonly<Place>, closes: boolean) => {
      if (closes) closing.push(node);
      else mark(this.#trie, node, inside);
    };
    walkString(this.#trie, language, start, visit, move);
    const exits = cached(this.#exits, MOST_EXITS, closing.join(), () => {
      const made = new Exits();
      for (const node of closing) made.add(this.#trie, node);
      return made;
    });
    return { inside, exits: [exits] };
  }
}

/**
 * Returns the cached value of a key. If there is none, creates and caches it; if there are more than `most`, drops the
 * oldest.
 */
function cached<T>(cache: Map<string, T>, most: number, key: string, make: () => T): T {
  let value = cache.get(key);
  if (value === undefined) {
    value = make();
    const [oldest] = cache.keys();
    if (oldest !== undefined && cache.size >= most) cache.delete(oldest);
    cache.set(key, value);
  }
  return value;
}

/**
 * Calls `visit` with each trie node that stays in the string and the position after it, and with each node that closes
 * the string and the position before the closing quote.
 */
function walkString(
  trie: Trie,
  language: StringLanguage,
  start: Readonly<Place>,
  visit: (node: number, place: Readonly<Place>, closes: boolean) => void,
  move: (language: StringLanguage, place: Place, byte: number) => Advance = advance,
): void {
  const { byte, depth, skip, nodes } = trie;
  const places: Place[] = Array.from({ length: trie.deepest + 1 }, () => ({ ...start }));
  for (let at = 1; at < nodes; ) {
    const level = depth[at] ?? 0;
    const [before, place] = [places[level - 1], places[level]];
    if (!before || !place) break;
    place.state = before.state;
    place.length = before.length;
    place.pending = before.pending;
    const done = move(language, place, byte[at] ?? 0);
    if (done !== 'no') visit(at, place, done === 'end');
    at = done === 'on' ? at + 1 : (skip[at] ?? nodes);
  }
}

const ANY_TEXT = new StringLanguage(null, 0, Number.POSITIVE_INFINITY, new Fuel());

/** Computes the masks of text without a pattern, for positions between two characters. */
class FreeText {
  readonly #trie: Trie;
  /** `upTo[n]`: tokens that begin at most n characters; the last one may be unfinished. */
  readonly #upTo: readonly Uint32Array[];
  /** `closes[n]`: tokens that close the string after n characters. */
  readonly #closes: Exits[] = [];
  readonly #closesAny = new Exits();

  constructor(trie: Trie, words: number) {
    this.#trie = trie;
    const starts: number[][] = [];
    walkString(trie, ANY_TEXT, { state: 0, length: 0, pending: PLAIN }, (node, { length, pending }, closes) => {
      if (closes) {
        this.#closes[length] ??= new Exits();
        this.#closes[length].add(trie, node);
        this.#closesAny.add(trie, node);
      } else if ((trie.token[node] ?? -1) >= 0) {
        const begun = length + (pending === PLAIN ? 0 : 1);
        starts[begun] ??= [];
        starts[begun].push(node);
      }
    });
    const mask = new Uint32Array(words);
    this.#upTo = Array.from({ length: Math.max(1, starts.length) }, (_, n) => {
      for (const node of starts[n] ?? []) mark(this.#trie, node, mask);
      return mask.slice();
    });
  }

  /**
   * Returns the mask at a position between two characters.
   *
   * @param missing number of characters that must still come
   * @param left number of characters that may still come
   */
  at(missing: number, left: number): StringMask {
    const inside = at(this.#upTo, Math.min(left, this.#upTo.length - 1));
    if (missing <= 0 && left >= this.#closes.length) return { inside, exits: [this.#closesAny] };
    const exits = this.#closes.filter((_, n) => n >= missing && n <= left);
    return { inside, exits };
  }
}

/**
 * Holds the tokens that close a string and continue, such as `",`, in a small trie over the bytes after the closing
 * quote. Tokens that differ only before the quote share a node, so finding the allowed ones takes a few steps.
 */
class Exits {
  readonly tokens: number[] = [];
  readonly #children = new Map<number, Exits>();

  /** Adds the tokens that end at a trie node or below it. The node must be the one directly after a closing quote. */
  add(trie: Trie, node: number): void {
    const { byte, depth, skip, token, same } = trie;
    const path: Exits[] = [];
    const end = skip[node] ?? 0;
    for (let at = node; at < end; at++) {
      const level = depth[at] ?? 0;
      const above = path[level - 1];
      const here = above ? above.#child(byte[at] ?? 0) : this;
      path[level] = here;
      for (let id = token[at] ?? -1; id >= 0; id = same[id] ?? -1) here.tokens.push(id);
    }
  }

  #child(byte: number): Exits {
    let child = this.#children.get(byte);
    if (!child) {
      child = new Exits();
      this.#children.set(byte, child);
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
      for (const [byte, child] of exits.#children) {
        const next = state.next(byte);
        if (next) open.push([child, next, rest + 1]);
      }
    }
  }
}
