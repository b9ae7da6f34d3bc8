import { at } from '../../at.ts';
import type { NumberLanguage } from '../number/number-language.ts';
import type { Node } from '../resolve/node.ts';
import type { TaggedObject } from '../tagged-object.ts';
import type { QuotedTexts } from '../text/quoted-texts.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { EndFrame, type Frame, type FrameTable, idOf, OpenFrame, single } from './frame.ts';
import { LiteralFrame } from './literal-frame.ts';
import { NumberFrame } from './number-frame.ts';
import { advanceRaw, countOf, type Place, StringFrame } from './string-frame.ts';
import { firstRawByte, PLAIN } from './text-bytes.ts';
import { ValueFrame } from './value-frame.ts';

/**
 * Reads a string that is written without quotes and escapes, up to a closing tag. No text of the language contains the
 * tag, so the string ends at the first one.
 */
export class RawTextFrame extends OpenFrame {
  readonly language: StringLanguage;
  readonly place: Readonly<Place>;

  /** @param after reads the closing tag from its first byte */
  private constructor(language: StringLanguage, place: Place, after: Frame) {
    super(after, after.depth);
    this.language = language;
    this.place = place;
  }

  /** Returns the frame of a text at the position `place`, by default at its beginning. */
  static at(
    language: StringLanguage,
    after: Frame,
    place: Place = { state: 0, length: 0, pending: PLAIN },
  ): RawTextFrame {
    const at = { ...place, length: countOf(language, place.length) };
    const key = `r${idOf(language)},${at.state},${at.length},${at.pending},${after.id}`;
    return after.table.frame(key, () => new RawTextFrame(language, at, after));
  }

  /** The frame that reads the closing tag if the text may end here; null otherwise. */
  get closing(): Frame | null {
    const { state, length, pending } = this.place;
    return pending === PLAIN && this.language.accepts(state, length) ? this.after : null;
  }

  override step(byte: number, into: Frame[]): void {
    this.closing?.step(byte, into);
    const place = { ...this.place };
    if (advanceRaw(this.language, place, byte) === 'on') into.push(RawTextFrame.at(this.language, this.after, place));
  }

  override forced(): number {
    const { state, length, pending } = this.place;
    if (pending !== PLAIN) return -1;
    if (!this.closing) {
      const only = this.language.onlyNext(state, length);
      return only < 0 ? -1 : firstRawByte(only);
    }
    return this.language.allowsAny(state, length, 0, 0x10_ff_ff) ? -1 : this.closing.forced();
  }
}

/** Number of cached frames at which an automaton empties its tables. This bounds them to about 5 MB. */
const TABLE_LIMIT = 10_000;

/**
 * Describes a text: a value, written as JSON or as members between tags, with fixed text before and after it. Without
 * `value`, the text is `before` and `after` alone, and must not be empty.
 */
export interface FramedValue {
  before: string;
  value?: Node | TaggedObject;
  after: string;
}

/**
 * Reads one answer byte by byte: JSON text without spaces, members in a fixed order, each string in its one shortest
 * form (as `JSON.stringify` writes it). States and transitions are built on first use and cached.
 */
export class Automaton implements FrameTable {
  readonly #alternatives: readonly FramedValue[];
  readonly #frames = new Map<string, Frame>();
  readonly #states = new Map<string, State>();
  #begin: State | undefined;
  #frameCount = 0;
  #stateCount = 0;

  readonly quoted: QuotedTexts | null;

  /**
   * @param root the value of the answer, or a list of alternatives, none of which may be a prefix of another
   * @param quoted texts that the answer's strings without a pattern or format are quoted from; null to allow any text
   */
  constructor(root: Node | readonly FramedValue[], quoted: QuotedTexts | null = null) {
    this.quoted = quoted;
    this.#alternatives = 'alternatives' in root ? [{ before: '', value: root, after: '' }] : root;
  }

  /** Returns the state before the first byte. */
  get start(): State {
    const end = new EndFrame(this);
    this.#begin ??= this.stateOf(this.#alternatives.map((alternative) => this.#framed(alternative, end)));
    return this.#begin;
  }

  #framed({ before, value, after }: FramedValue, end: Frame): Frame {
    const ending = fixed(after, end);
    if (!value) return fixed(before, ending);
    return fixed(before, 'tags' in value ? TaggedObjectFrame.at(value, 0, ending) : new ValueFrame(value, ending, 0));
  }

  value(node: Node, after: Frame, depth: number): ValueFrame {
    return this.frame(ValueFrame.key(node, after), () => new ValueFrame(node, after, depth));
  }

  frame<F extends Frame>(key: string, make: () => F): F {
    let frame = this.#frames.get(key);
    if (!frame) {
      if (this.#frames.size >= TABLE_LIMIT) this.#forget();
      frame = make();
      this.#frames.set(key, frame);
    }
    // The cast is safe, because a key determines the class of its frame.
    return frame as F;
  }

  /**
   * Empties the tables. Frames created later no longer share objects with earlier ones, which costs work but changes no
   * answer.
   */
  #forget(): void {
    this.#frames.clear();
    this.#states.clear();
    this.#begin = undefined;
  }

  nextFrameId(): number {
    return this.#frameCount++;
  }

  /**
   * Returns the automaton state for a set of frames, each of which is one possible reading of the text so far; null for
   * an empty set.
   */
  state(frames: readonly Frame[]): State | null {
    return frames.length === 0 ? null : this.stateOf(frames);
  }

  /** Returns the automaton state for a set of frames, of which there must be at least one; duplicates are ignored. */
  stateOf(frames: readonly Frame[]): State {
    const unique = frames.length === 1 ? frames : withinBounds([...new Set(frames)]);
    const key = unique
      .map(({ id }) => id)
      .sort((a, b) => a - b)
      .join();
    let state = this.#states.get(key);
    if (!state) {
      state = new State(this, unique, this.#stateCount++);
      this.#states.set(key, state);
    }
    return state;
  }
}

/** Returns the frame that reads a fixed text and then continues with `after`; `after` itself if the text is empty. */
function fixed(text: string, after: Frame): Frame {
  return text === '' ? after : LiteralFrame.of([new TextEncoder().encode(text)], after);
}

/**
 * Maximum number of frames in a state, each of which is one possible reading of the text. If a schema is more
 * ambiguous, the later alternatives are dropped; the remaining ones are valid and can be completed.
 */
const MOST_READINGS = 512;
/**
 * Maximum number of different string patterns, and of different number rules, among these frames. Computing a token
 * mask walks over the vocabulary once for each.
 */
const MOST_RULES = 16;

function withinBounds(frames: readonly Frame[]): readonly Frame[] {
  const bounded = frames.slice(0, MOST_READINGS);
  if (bounded.length <= MOST_RULES) return bounded;
  const patterns = new Set<StringLanguage>();
  const numbers = new Set<NumberLanguage>();
  return bounded.filter((frame) => {
    if (frame instanceof NumberFrame) return isAmong(numbers, frame.language);
    return !(frame instanceof StringFrame) || !frame.language.dfa || isAmong(patterns, frame.language);
  });
}

/** Adds a rule to a set of at most `MOST_RULES`. Returns whether the set then contains it. */
function isAmong<T>(rules: Set<T>, rule: T): boolean {
  if (rules.size < MOST_RULES) rules.add(rule);
  return rules.has(rule);
}

/** Represents the state of the automaton after some text, as one frame for each possible reading of that text. */
export class State {
  readonly id: number;
  readonly frames: readonly Frame[];
  readonly #automaton: Automaton;
  readonly #edges = new Map<number, State | null>();
  #forcedByte: number | undefined;

  constructor(automaton: Automaton, frames: readonly Frame[], id: number) {
    this.#automaton = automaton;
    this.frames = frames;
    this.id = id;
  }

  /** True if the text is a complete answer, after which nothing may follow. */
  get complete(): boolean {
    return this.frames.length === 1 && this.frames[0] instanceof EndFrame;
  }

  /** Returns the state after one more byte; null if the byte is not allowed. */
  next(byte: number): State | null {
    let next = this.#edges.get(byte);
    if (next === undefined) {
      const frames: Frame[] = [];
      for (const frame of this.frames) frame.step(byte, frames);
      next = this.#automaton.state(frames);
      this.#edges.set(byte, next);
    }
    return next;
  }

  /** Returns the automaton state for some of this state's frames; null if there are none. */
  with(frames: readonly Frame[]): State | null {
    return this.#automaton.state(frames);
  }

  /** Returns the automaton state for this one frame, which need not belong to this state. */
  only(frame: Frame): State {
    return this.#automaton.stateOf([frame]);
  }

  /** The one byte that can come next; -1 if there are several, or none. */
  get forced(): number {
    this.#forcedByte ??= single(new Set(this.frames.map((frame) => frame.forced())));
    return this.#forcedByte;
  }
}

/**
 * Reads an object whose members are written between tags (`Tags`), in a fixed order. The next member is the one at
 * `#index` or a later one, up to the next required one.
 */
class TaggedObjectFrame extends OpenFrame {
  readonly #object: TaggedObject;
  readonly #index: number;
  #options: readonly Frame[] | undefined;

  private constructor(object: TaggedObject, index: number, after: Frame) {
    super(after, after.depth);
    this.#object = object;
    this.#index = index;
  }

  /** Returns the frame before the member at `index`; `after` if there is none. */
  static at(object: TaggedObject, index: number, after: Frame): Frame {
    if (index === object.members.length) return after;
    return after.table.frame(
      `t${idOf(object)},${index},${after.id}`,
      () => new TaggedObjectFrame(object, index, after),
    );
  }

  override step(byte: number, into: Frame[]): void {
    for (const option of this.#all()) option.step(byte, into);
  }

  override forced(): number {
    return single(new Set(this.#all().map((option) => option.forced())));
  }

  override get mayEndAnswer(): boolean {
    return this.#all().includes(this.after) && this.after.mayEndAnswer;
  }

  /**
   * Returns the frames of all that can come next: each possible member, in each form of its value, and the text after
   * the object.
   */
  #all(): readonly Frame[] {
    this.#options ??= this.#found();
    return this.#options;
  }

  #found(): Frame[] {
    const { members } = this.#object;
    const options: Frame[] = [];
    for (let i = this.#index; i < members.length; i++) {
      options.push(...this.#member(i));
      if (at(members, i).required) return options;
    }
    return [...options, this.after];
  }

  #member(index: number): Frame[] {
    const object = this.#object;
    const { begin, texts, languages, json } = at(object.members, index);
    const close = LiteralFrame.of(object.close, TaggedObjectFrame.at(object, index + 1, this.after));
    const values: Frame[] = languages.map((language) => RawTextFrame.at(language, close));
    if (texts.length > 0) values.push(LiteralFrame.of(texts, close));
    if (json) values.push(this.table.value(json, close, 1));
    return values.map((value) => LiteralFrame.of(begin, value));
  }
}
