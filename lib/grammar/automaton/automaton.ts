import type { Node } from '../resolve/node.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { EndFrame, type Frame, type FrameTable, single } from './frame.ts';
import { LiteralFrame } from './literal-frame.ts';
import { StringFrame } from './string-frame.ts';
import { ValueFrame } from './value-frame.ts';

/** Number of frames at which the tables of a grammar are emptied. It stays at about 5 MB, however long it is used. */
const TABLE_LIMIT = 10_000;

/** Describes a JSON value with fixed text around it, or a fixed text alone. The text is not empty without a value. */
export interface FramedValue {
  before: string;
  value?: Node;
  after: string;
}

/**
 * Reads one answer byte by byte: JSON text without spaces, members in a fixed order, each string in its one shortest
 * form (as `JSON.stringify` writes it). States and edges are built on first use and kept.
 */
export class Automaton implements FrameTable {
  private readonly alternatives: readonly FramedValue[];
  private readonly frames = new Map<string, Frame>();
  private readonly states = new Map<string, State>();
  private begin: State | undefined;
  private frameCount = 0;
  private stateCount = 0;

  /** @param root the answer's value; a list: one of these texts, of which none begins another */
  constructor(root: Node | readonly FramedValue[]) {
    this.alternatives = 'alternatives' in root ? [{ before: '', value: root, after: '' }] : root;
  }

  /** Returns the state before the first byte. */
  get start(): State {
    const end = new EndFrame(this);
    this.begin ??= this.stateOf(this.alternatives.map((alternative) => this.framed(alternative, end)));
    return this.begin;
  }

  private framed({ before, value, after }: FramedValue, end: Frame): Frame {
    const ending = fixed(after, end);
    return fixed(before, value ? new ValueFrame(value, ending, 0) : ending);
  }

  value(node: Node, after: Frame, depth: number): ValueFrame {
    return this.frame(ValueFrame.key(node, after), () => new ValueFrame(node, after, depth));
  }

  frame<F extends Frame>(key: string, make: () => F): F {
    let frame = this.frames.get(key);
    if (!frame) {
      if (this.frames.size >= TABLE_LIMIT) this.forget();
      frame = make();
      this.frames.set(key, frame);
    }
    // A key contains the kind of its frame.
    return frame as F;
  }

  /**
   * Empties the tables. Frames created later no longer share objects with earlier ones, which costs work but changes no
   * answer.
   */
  private forget(): void {
    this.frames.clear();
    this.states.clear();
    this.begin = undefined;
  }

  nextFrameId(): number {
    return this.frameCount++;
  }

  /** Returns the state in which any of these frames may be the true one; null for no frame. */
  state(frames: readonly Frame[]): State | null {
    return frames.length === 0 ? null : this.stateOf(frames);
  }

  /** Returns the state of at least one frame. */
  stateOf(frames: readonly Frame[]): State {
    const unique = frames.length === 1 ? frames : withinBounds([...new Set(frames)]);
    const key = unique
      .map(({ id }) => id)
      .sort((a, b) => a - b)
      .join();
    let state = this.states.get(key);
    if (!state) {
      state = new State(this, unique, this.stateCount++);
      this.states.set(key, state);
    }
    return state;
  }
}

/** Returns the frame of a fixed text; that of what follows for an empty one. */
function fixed(text: string, after: Frame): Frame {
  return text === '' ? after : LiteralFrame.first([new TextEncoder().encode(text)], after);
}

/**
 * The number of readings of the text that are followed at once. If a schema is more ambiguous than that, the later
 * alternatives are dropped; the remaining ones are still valid and can still end.
 */
const MOST_READINGS = 512;
/** The number of different patterns among these readings; each one takes a walk over the vocabulary. */
const MOST_PATTERNS = 16;

function withinBounds(frames: readonly Frame[]): readonly Frame[] {
  const kept = frames.slice(0, MOST_READINGS);
  if (kept.length <= MOST_PATTERNS) return kept;
  const languages = new Set<StringLanguage>();
  return kept.filter((frame) => {
    if (!(frame instanceof StringFrame) || !frame.language.dfa) return true;
    if (languages.size < MOST_PATTERNS) languages.add(frame.language);
    return languages.has(frame.language);
  });
}

/** Holds every reading of the text so far. */
export class State {
  readonly id: number;
  readonly frames: readonly Frame[];
  private readonly automaton: Automaton;
  private readonly edges = new Map<number, State | null>();
  private forcedByte: number | undefined;

  constructor(automaton: Automaton, frames: readonly Frame[], id: number) {
    this.automaton = automaton;
    this.frames = frames;
    this.id = id;
  }

  /** True after the whole answer, when nothing may follow. */
  get complete(): boolean {
    return this.frames.length === 1 && this.frames[0] instanceof EndFrame;
  }

  /** Returns the state after one more byte; null if the byte is not allowed. */
  next(byte: number): State | null {
    let next = this.edges.get(byte);
    if (next === undefined) {
      const frames: Frame[] = [];
      for (const frame of this.frames) frame.step(byte, frames);
      next = this.automaton.state(frames);
      this.edges.set(byte, next);
    }
    return next;
  }

  /** Returns the state of some of these frames; null for none. */
  with(frames: readonly Frame[]): State | null {
    return this.automaton.state(frames);
  }

  /** Returns the state of one frame, which need not be one of these. */
  only(frame: Frame): State {
    return this.automaton.stateOf([frame]);
  }

  /** Returns the one byte that can come next; -1 if there are several, or none. */
  get forced(): number {
    this.forcedByte ??= single(new Set(this.frames.map((frame) => frame.forced())));
    return this.forcedByte;
  }
}
