import { at } from '../../at.ts';
import { AssayError } from '../../errors.ts';
import { RawTextFrame, type State } from '../automaton/automaton.ts';
import { BYTE, type Frame } from '../automaton/frame.ts';
import { FreshTextFrame } from '../automaton/fresh-text-frame.ts';
import { NumberFrame } from '../automaton/number-frame.ts';
import { StringFrame } from '../automaton/string-frame.ts';
import { PLAIN } from '../automaton/text-bytes.ts';
import { VerbatimFrame } from '../automaton/verbatim-frame.ts';
import type { Vocabulary } from '../constraint.ts';
import type { NumberLanguage } from '../number/number-language.ts';
import { MEMBER_NAME } from '../resolve/resolver.ts';
import { StringMasks } from './string-masks.ts';
import { addMask, setBit } from './token-mask.ts';
import { buildTrie, childOf, descend, longestTokens, mark, type Trie, unmark } from './trie.ts';
import { walk, walkNumber } from './walk.ts';

const encoder = new TextEncoder();

/**
 * Computes the token masks of one vocabulary from its trie and from cached masks of string positions. `masksOf` creates
 * one instance for each vocabulary.
 */
export class Masks {
  readonly vocabulary: Vocabulary;
  readonly trie: Trie;
  readonly #strings: StringMasks;
  readonly #scratch: Uint32Array;

  constructor(vocabulary: Vocabulary) {
    this.vocabulary = vocabulary;
    this.trie = buildTrie(vocabulary);
    this.#strings = new StringMasks(this.trie, vocabulary.size);
    this.#scratch = new Uint32Array(Math.ceil(vocabulary.size / 32));
  }

  /**
   * Marks the tokens that are allowed in a state, and no others: overwrites all of `into`. The masks of strings are
   * looked up; for all other frames the trie is walked.
   *
   * @param node trie node of the withheld bytes (0, the root, for none): only tokens that begin with these bytes are
   *   marked
   */
  fill(state: State, node: number, into: Uint32Array): void {
    into.fill(0);
    if (state.complete) {
      for (const token of this.vocabulary.end) setBit(into, token);
      return;
    }
    if (node !== 0) {
      mark(this.trie, node, into);
      walk(this.trie, node, state, into);
      return;
    }
    const others: Frame[] = [];
    const numbers = new Map<NumberLanguage, NumberFrame[]>();
    for (const frame of state.frames) {
      if (frame instanceof VerbatimFrame) this.#addQuotation(frame, state, into);
      else if (frame instanceof StringFrame) this.#addString(frame, state, into);
      else if (frame instanceof RawTextFrame) {
        addMask(into, this.#strings.insideRaw(frame.language, frame.place));
        if (frame.closing) others.push(frame.closing);
      } else if (frame instanceof NumberFrame) {
        const alike = numbers.get(frame.language);
        if (alike) alike.push(frame);
        else numbers.set(frame.language, [frame]);
      } else if (frame instanceof FreshTextFrame && frame.place.pending === PLAIN) this.#addFresh(frame, state, into);
      else others.push(frame);
    }
    for (const alike of numbers.values()) this.#addNumber(alike, state, into);
    const rest = state.with(others);
    if (rest) walk(this.trie, 0, rest, into);
  }

  /** Marks the tokens that continue a number. The frames have read the same text, and differ in what follows it. */
  #addNumber(frames: readonly NumberFrame[], state: State, into: Uint32Array): void {
    const after = state.with(frames.map((frame) => frame.after));
    if (after) walkNumber(this.trie, at(frames, 0), after, into);
  }

  /** Marks the tokens after which one of these strings is nearer to its shortest end. */
  fillNearerEnd(strings: readonly StringFrame[], into: Uint32Array): void {
    into.fill(0);
    for (const { language, place } of strings) addMask(into, this.#strings.nearerEnd(language, place));
  }

  #addString(frame: StringFrame, state: State, into: Uint32Array): void {
    const { inside, exits } = this.#strings.at(frame.language, frame.place);
    addMask(into, inside);
    const after = state.only(frame.after);
    for (const exit of exits) exit.walk(after, (token) => setBit(into, token));
  }

  /**
   * Marks the tokens that continue a quotation, or close it and continue after it. Follows the texts and the trie side
   * by side, so it creates no automaton states within the string.
   */
  #addQuotation(frame: VerbatimFrame, state: State, into: Uint32Array): void {
    const { trie } = this;
    // A greatest length is counted in characters, which only the frames know.
    if (frame.language.max !== Infinity || frame.place.pending !== PLAIN) {
      walk(trie, 0, state.only(frame), into);
      return;
    }
    const after = state.only(frame.after);
    const { bytes } = frame.quoted;
    const close = (node: number) => {
      const quote = childOf(trie, node, BYTE.quote);
      if (quote < 0) return;
      mark(trie, quote, into);
      walk(trie, quote, after, into);
    };
    if (frame.mayClose) close(0);
    const open: [node: number, offsets: Int32Array | number[], length: number][] = [
      [0, frame.offsets, frame.place.length],
    ];
    for (let top = open.pop(); top; top = open.pop()) {
      const [node, offsets, length] = top;
      const byByte = new Map<number, number[]>();
      for (const offset of offsets) {
        const byte = bytes[offset] ?? 0;
        const group = byByte.get(byte);
        if (group) group.push(offset + 1);
        else byByte.set(byte, [offset + 1]);
      }
      for (const [byte, next] of byByte) {
        const child = byte === 0 ? -1 : childOf(trie, node, byte);
        if (child < 0) continue;
        mark(trie, child, into);
        const end = at(next, 0);
        // A token may end within a character; the string may not.
        const whole = frame.quoted.isBoundary(end);
        const longer = length + (whole ? 1 : 0);
        if (whole && frame.quoted.mayEnd(end) && longer >= frame.language.min) close(child);
        open.push([child, next, longer]);
      }
    }
  }

  /** Marks the tokens that continue a text which must differ from others, except those that can only lead to these. */
  #addFresh(frame: FreshTextFrame, state: State, into: Uint32Array): void {
    const own = state.only(frame);
    const { text, place, owner, language } = frame;
    const { inside, exits } = this.#strings.at(language, place);
    const mask = this.#scratch;
    mask.set(inside);
    const after = state.only(frame.behind);
    for (const exit of exits) {
      exit.walk(after, (token, rest) => {
        // A token that runs into the next text could repeat this one, so it is checked byte by byte.
        if (rest <= 2 || accepts(own, this.vocabulary.bytes(token) ?? [])) setBit(mask, token);
      });
    }
    for (const taken of owner.taken) {
      if (!taken.startsWith(text)) continue;
      const rest = encoder.encode(JSON.stringify(taken.slice(text.length)).slice(1, -1));
      // Where the language is finite, the beginning of a taken text may lead to nothing else.
      for (let length = language.dfa ? 1 : rest.length; length <= rest.length && length > 0; length++) {
        const node = descend(this.trie, rest.subarray(0, length));
        if (node < 0) break;
        if (!accepts(own, rest.subarray(0, length))) unmark(this.trie, node, mask);
      }
      const node = descend(this.trie, rest);
      if (node < 0) continue;
      const closed = descend(this.trie, Uint8Array.of(...rest, 0x22));
      if (closed >= 0) this.#unmarkAll(closed, mask);
    }
    addMask(into, mask);
  }

  /**
   * Returns the ids of the tokens that the tokenizer gives for a text in UTF-8. If they do not spell exactly this text,
   * splits it into the longest tokens that do.
   *
   * @throws AssayError `engine_failed` if no tokens spell the text
   */
  tokenise(text: Uint8Array): number[] {
    const tokens = this.vocabulary.encode(new TextDecoder('utf-8', { ignoreBOM: true }).decode(text));
    if (this.#writes(tokens, text)) return tokens;
    try {
      return longestTokens(this.trie, text);
    } catch (cause) {
      throw new AssayError('engine_failed', 'The model has no tokens for a part of the answer; use another model.', {
        cause,
      });
    }
  }

  #writes(tokens: readonly number[], text: Uint8Array): boolean {
    let at = 0;
    for (const token of tokens) {
      const bytes = this.vocabulary.bytes(token);
      if (!bytes) return false;
      for (const byte of bytes) if (text[at++] !== byte) return false;
    }
    return at === text.length;
  }

  /** Computes and caches the most expensive mask in advance; otherwise the first answer would wait for it. */
  warm(): void {
    this.#strings.at(MEMBER_NAME, { state: 0, length: 0, pending: PLAIN });
  }

  #unmarkAll(node: number, mask: Uint32Array): void {
    const end = this.trie.skip[node] ?? 0;
    for (let at = node; at < end; at++) unmark(this.trie, at, mask);
  }
}

/** Tells whether the automaton allows these bytes after the state `from`. */
function accepts(from: State, bytes: Iterable<number>): boolean {
  let state: State | null = from;
  for (const byte of bytes) state = state?.next(byte) ?? null;
  return state !== null;
}

const made = new WeakMap<Vocabulary, Masks>();

/** Returns the masks of a vocabulary, which are created at the first call for it. */
export function masksOf(vocabulary: Vocabulary): Masks {
  let masks = made.get(vocabulary);
  if (!masks) {
    masks = new Masks(vocabulary);
    made.set(vocabulary, masks);
  }
  return masks;
}
