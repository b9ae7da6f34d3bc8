import { at } from '../at.ts';
import { AssayError } from '../errors.ts';
import { type Automaton, RawTextFrame, type State } from './automaton/automaton.ts';
import { BYTE, isNumeric } from './automaton/frame.ts';
import { FreshTextFrame } from './automaton/fresh-text-frame.ts';
import { FreshNumberFrame, NumberFrame } from './automaton/number-frame.ts';
import { StringFrame } from './automaton/string-frame.ts';
import { PLAIN } from './automaton/text-bytes.ts';
import { close, type Missing, settledLength } from './closing.ts';
import type { Constraint } from './constraint.ts';
import { type LoopBounds, LoopDetector } from './loop-detector.ts';
import type { Masks } from './vocabulary/masks.ts';
import { childOf, descend } from './vocabulary/trie.ts';
import { anyBelow } from './vocabulary/walk.ts';

/**
 * Maximum number of bytes that one call of `takeForced` accepts. A large `minItems` can force more text than the
 * model's context holds.
 */
const MOST_FORCED = 65_536;

/**
 * Thresholds at which the tokens of a string count as a loop. From then on the string is closed wherever the grammar
 * allows it, and a string with a pattern or format is led to its shortest end.
 */
const STRING_LOOP: LoopBounds = { tokens: 64, n: 16, distinct: 16 };

/**
 * Implements `Constraint` with a byte automaton and the token masks of a vocabulary.
 *
 * Jump-forward: text that the grammar forces is written without a choice of the model, in the tokens that the tokenizer
 * gives for it.
 *
 * Token healing: if the model chooses next, the last forced token is withheld if longer tokens begin with it. Example:
 * a model trained on whole texts has seen the end of `{"a":"` as the one token `":"`, so it would hardly ever begin a
 * string after a forced `":`. Therefore `":` is withheld, and the model chooses among all tokens that begin with it.
 * Nothing is withheld before free text (the characters of a string or number): that would cost one more choice for each
 * string, and only few texts begin with a character that merges with the quote.
 */
export class GrammarConstraint implements Constraint {
  readonly #automaton: Automaton;
  readonly #masks: Masks;
  #state: State;
  #bytes: Uint8Array;
  #byteCount: number;
  /** Bytes that must come next but are not written yet (`withholdLast`); `state` is the state after them. */
  #withheld: Uint8Array = NOTHING;
  /** Trie node of the withheld bytes; 0, the root, for none. */
  #withheldNode = 0;
  /** Values that `closed` writes for required members that were not reached. */
  readonly #missing: Missing;
  /** Watches the tokens of the current string for repetition. */
  #stringLoop = new LoopDetector(STRING_LOOP);
  /** True while the current string is led to its end, during which its tokens may no longer count as a loop. */
  #ending = false;

  constructor(automaton: Automaton, masks: Masks, missing: Missing = new Map()) {
    this.#automaton = automaton;
    this.#masks = masks;
    this.#state = automaton.start;
    this.#bytes = new Uint8Array(64);
    this.#byteCount = 0;
    this.#missing = missing;
  }

  get length(): number {
    return this.#byteCount;
  }

  get complete(): boolean {
    return this.#state.complete;
  }

  /**
   * True if the text may end here. A longer text may be possible, too: the tool name `get` may end although `get_all`
   * exists.
   */
  get mayEnd(): boolean {
    return this.#state.frames.some((frame) => frame.mayEndAnswer);
  }

  takeForced(): number[] {
    if (this.#withheld.length > 0 || this.complete) return [];
    const { text, state } = this.#forcedText();
    if (text.length === 0) return [];
    const tokens = this.#masks.tokenise(text);
    this.#state = state;
    this.#append(text);
    if (!state.complete && !inFreeText(state)) this.#withholdLast(tokens);
    return tokens;
  }

  mask(into: Uint32Array): void {
    // Withheld bytes come first: a token that only closes the string does not begin with them.
    const ends = (this.#stringLoop.looping || this.#ending) && this.#withheld.length === 0;
    if (ends && fillEnding(this.#masks, this.#state, into)) return;
    this.#masks.fill(this.#state, this.#withheldNode, into);
    if (into.every((word) => word === 0)) {
      throw new AssayError('engine_failed', 'The model has no token for what has to come next; use another model.');
    }
  }

  accept(token: number): void {
    if (this.complete && this.#masks.vocabulary.end.has(token)) return;
    const bytes = this.#bytesOf(token);
    let state: State | null = bytes && this.#state;
    let leftString = false;
    for (let i = this.#withheld.length; bytes && state && i < bytes.length; i++) {
      state = state.next(at(bytes, i));
      if (state && !inString(state)) leftString = true;
    }
    if (!bytes || !state) throw new RangeError(`token ${token} is not allowed here`);
    if (leftString) {
      this.#stringLoop.clear();
      this.#ending = false;
    }
    if (inString(state)) this.#stringLoop.push(token);
    if (this.#stringLoop.looping && stringsWithRules(state)) this.#ending = true;
    this.#state = state;
    this.#append(bytes);
    this.#withheld = NOTHING;
    this.#withheldNode = 0;
  }

  accepts(token: number): boolean {
    if (this.complete) return this.#masks.vocabulary.end.has(token);
    const bytes = this.#bytesOf(token);
    let state: State | null = bytes && this.#state;
    for (let i = this.#withheld.length; bytes && state && i < bytes.length; i++) state = state.next(at(bytes, i));
    return state !== null;
  }

  /**
   * Returns the id of the token that consists of the withheld bytes and the quote that begins a string, because most
   * values are strings; null if no bytes are withheld, no string may come next, or there is no such token.
   */
  expected(): number | null {
    if (this.#withheld.length === 0 || !this.#state.next(BYTE.quote)) return null;
    const { trie } = this.#masks;
    const node = descend(trie, Uint8Array.of(...this.#withheld, BYTE.quote));
    const token = node < 0 ? -1 : at(trie.token, node);
    return token < 0 ? null : token;
  }

  /** Returns the bytes of a token; null if it has none, ends the answer, or contradicts the withheld bytes. */
  #bytesOf(token: number): Uint8Array | null {
    const { vocabulary } = this.#masks;
    const bytes = vocabulary.end.has(token) ? null : vocabulary.bytes(token);
    return bytes && bytes.length > 0 && this.#withheld.every((byte, i) => bytes[i] === byte) ? bytes : null;
  }

  text(): string {
    return decode(this.#bytes.subarray(0, this.#byteCount));
  }

  closed(): string {
    return close(this.#whole, this.#state, this.#missing);
  }

  /**
   * Returns the beginning of `text()` that stays part of the answer, wherever the answer is cut: without an incomplete
   * character, number, literal or name at its end.
   */
  settled(): string {
    return decode(this.#bytes.subarray(0, Math.min(this.#byteCount, settledLength(this.#whole, this.#state))));
  }

  /** Bytes so far, with those that are withheld. */
  get #whole(): Uint8Array {
    const whole = new Uint8Array(this.#byteCount + this.#withheld.length);
    whole.set(this.#bytes.subarray(0, this.#byteCount));
    whole.set(this.#withheld, this.#byteCount);
    return whole;
  }

  fork(automaton = this.#automaton): GrammarConstraint {
    const copy = new GrammarConstraint(automaton, this.#masks, this.#missing);
    copy.#state = this.#state;
    copy.#bytes = this.#bytes.slice(0, this.#byteCount + 64);
    copy.#byteCount = this.#byteCount;
    copy.#withheld = this.#withheld;
    copy.#withheldNode = this.#withheldNode;
    copy.#stringLoop = this.#stringLoop.fork();
    copy.#ending = this.#ending;
    return copy;
  }

  /**
   * Returns a constraint of another automaton that has accepted the same text and withholds the same bytes.
   *
   * @throws RangeError if that automaton does not allow the text
   */
  alongside(automaton: Automaton): GrammarConstraint {
    const other = this.fork(automaton);
    let state: State | null = automaton.start;
    for (const byte of this.#whole) state = state?.next(byte) ?? null;
    if (!state) throw new RangeError('the other automaton does not allow this text');
    other.#state = state;
    return other;
  }

  /**
   * Withholds the byte that must come next, too, so that the next token begins with it. Returns false, and changes
   * nothing, if bytes are withheld, but no token begins with them and that byte, or if there is no such byte.
   */
  withholdNext(): boolean {
    if (this.#withheld.length === 0) return true;
    const byte = this.#state.forced;
    const next = this.#state.next(byte);
    const node = byte < 0 ? -1 : childOf(this.#masks.trie, this.#withheldNode, byte);
    if (!next || node < 0) return false;
    this.#state = next;
    this.#withheld = Uint8Array.of(...this.#withheld, byte);
    this.#withheldNode = node;
    return true;
  }

  /** Writes the withheld bytes. Returns their tokens. */
  release(): number[] {
    if (this.#withheld.length === 0) return [];
    const tokens = this.#masks.tokenise(this.#withheld);
    this.#append(this.#withheld);
    this.#withheld = NOTHING;
    this.#withheldNode = 0;
    return tokens;
  }

  /** Accepts a text without choosing tokens for it. Throws a RangeError if the grammar does not allow it here. */
  skip(text: string): void {
    const bytes = new TextEncoder().encode(text);
    let state: State | null = this.#state;
    for (const byte of bytes) state = state?.next(byte) ?? null;
    if (!state) throw new RangeError('this text is not allowed here');
    this.#state = state;
    this.#append(bytes);
  }

  /** Returns the text that must come next, up to its last complete character, and the state after it. */
  #forcedText(): { text: Uint8Array; state: State } {
    const bytes: number[] = [];
    let state = this.#state;
    let whole = { length: 0, state };
    for (let byte = state.forced; byte >= 0 && bytes.length < MOST_FORCED; byte = state.forced) {
      const next = state.next(byte);
      if (!next) break;
      bytes.push(byte);
      state = next;
      if (byte < 0x80 || !midCharacter(bytes)) whole = { length: bytes.length, state };
    }
    return { text: Uint8Array.from(bytes.slice(0, whole.length)), state: whole.state };
  }

  /** Withholds the last token if a longer token that begins with it is allowed. The model then chooses one of them. */
  #withholdLast(tokens: number[]): void {
    const { vocabulary, trie } = this.#masks;
    const last = vocabulary.bytes(tokens.at(-1)!)!;
    const node = descend(trie, last);
    // Longer tokens that continue with a digit or minus do not count: otherwise every number would cost one more
    // choice.
    if (node < 0 || !anyBelow(trie, node, this.#state, (byte) => !isNumeric(byte))) return;
    tokens.pop();
    this.#byteCount -= last.length;
    this.#withheld = last;
    this.#withheldNode = node;
  }

  #append(bytes: Uint8Array): void {
    if (this.#byteCount + bytes.length > this.#bytes.length) {
      const larger = new Uint8Array(2 * (this.#byteCount + bytes.length));
      larger.set(this.#bytes.subarray(0, this.#byteCount));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#byteCount);
    this.#byteCount += bytes.length;
  }
}

const NOTHING = new Uint8Array();

function decode(bytes: Uint8Array): string {
  // Decoding as a stream omits a character that is cut in the middle instead of replacing it.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
}

/** Tells whether the bytes end inside a UTF-8 sequence. */
function midCharacter(bytes: readonly number[]): boolean {
  let lead = bytes.length - 1;
  while (lead > 0 && (at(bytes, lead) & 0xc0) === 0x80) lead--;
  const first = at(bytes, lead);
  const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return bytes.length - lead < length;
}

/**
 * Tells whether the model is about to choose characters of a string or undeclared name, or digits of a number, and
 * nothing else.
 */
function inFreeText({ frames }: State): boolean {
  return frames.every((frame) => {
    if (frame instanceof StringFrame || frame instanceof RawTextFrame || frame instanceof FreshTextFrame)
      return frame.place.pending === PLAIN;
    return frame instanceof NumberFrame || frame instanceof FreshNumberFrame;
  });
}

/** Tells whether a state is inside a string, a raw text or a name. */
function inString({ frames }: State): boolean {
  return frames.some(
    (frame) => frame instanceof StringFrame || frame instanceof RawTextFrame || frame instanceof FreshTextFrame,
  );
}

/** Returns the frames of a state if all of them read a string with a pattern or format; null otherwise. */
function stringsWithRules({ frames }: State): readonly StringFrame[] | null {
  const strings = frames.filter((frame) => frame instanceof StringFrame);
  return strings.length === frames.length && strings.every(({ language }) => language.dfa) ? strings : null;
}

/**
 * Marks in `into` only the tokens that end the current string or raw text, or that bring a string with a pattern or
 * format nearer to its end. Returns false if there are none.
 *
 * @param into bit mask of the vocabulary, one bit for each token
 */
function fillEnding(masks: Masks, state: State, into: Uint32Array): boolean {
  return closingQuote(masks, state, into) || closingTag(masks, state, into) || nearerEnd(masks, state, into);
}

function closingQuote(masks: Masks, state: State, into: Uint32Array): boolean {
  const closed = inString(state) ? state.next(BYTE.quote) : null;
  const node = descend(masks.trie, Uint8Array.of(BYTE.quote));
  // After a backslash, a quote is a character of the string.
  if (!closed || closed.complete || inString(closed) || node < 0) return false;
  masks.fill(closed, node, into);
  return hasAny(into);
}

function closingTag(masks: Masks, state: State, into: Uint32Array): boolean {
  const raw = state.frames.filter((frame) => frame instanceof RawTextFrame);
  if (raw.length === 0) return false;
  // A closing tag that the model has begun must be continued; otherwise it could begin one again and again.
  const others = state.frames.filter((frame) => !(frame instanceof RawTextFrame));
  const closed = state.with(others.length > 0 ? others : raw.flatMap(({ closing }) => closing ?? []));
  if (!closed) return false;
  masks.fill(closed, 0, into);
  return hasAny(into);
}

function nearerEnd(masks: Masks, state: State, into: Uint32Array): boolean {
  const strings = stringsWithRules(state);
  if (!strings) return false;
  masks.fillNearerEnd(strings, into);
  return hasAny(into);
}

function hasAny(mask: Uint32Array): boolean {
  return mask.some((word) => word !== 0);
}
