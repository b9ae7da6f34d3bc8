import { LIMITS } from '../limits.ts';
import type { Node } from '../resolve/node.ts';
import type { QuotedTexts } from '../text/quoted-texts.ts';

/**
 * Caches the frames of one automaton, so that equal frames are one object. Frames create other frames through this
 * table, so their classes need not import each other.
 */
export interface FrameTable {
  /** Texts that strings without a pattern or format are quoted from; null if they may be any text. */
  readonly quoted: QuotedTexts | null;
  /** Returns a number that no other frame of the automaton has. */
  nextFrameId(): number;
  /** Returns the cached frame of `key`. If there is none, creates it with `make` and caches it. */
  frame<F extends Frame>(key: string, make: () => F): F;
  /**
   * Returns the frame that reads a value from its first byte. When the value has ended, `after` continues. `depth` is
   * the number of objects and arrays that are open around the value.
   */
  value(node: Node, after: Frame, depth: number): Frame;
}

/**
 * Represents one position in the nesting of the answer: a value about to begin, a string, a number, an object, an
 * array, or the end. Frames are immutable: a step returns other frames. Equal frames are one object
 * (`FrameTable.frame`).
 */
export abstract class Frame {
  readonly id: number;
  readonly table: FrameTable;
  /** Number of objects and arrays that are open at this position. */
  readonly depth: number;

  constructor(table: FrameTable, depth: number) {
    this.table = table;
    this.depth = depth;
    this.id = table.nextFrameId();
  }

  /** Adds to `into` the frames that continue after one more byte; adds none if the byte is not allowed. */
  abstract step(byte: number, into: Frame[]): void;

  /** Returns the one byte that can come next; -1 if there are several, or none. */
  abstract forced(): number;

  /** True if the whole answer may end here, even if it could also continue. */
  get mayEndAnswer(): boolean {
    return false;
  }
}

/** Represents an unfinished part of the answer. When the part ends, the frame `after` continues. */
export abstract class OpenFrame extends Frame {
  readonly after: Frame;

  constructor(after: Frame, depth: number) {
    super(after.table, depth);
    this.after = after;
  }
}

/** Represents the end of the whole answer. */
export class EndFrame extends Frame {
  constructor(table: FrameTable) {
    super(table, 0);
  }
  override step(): void {}
  override forced(): number {
    return -1;
  }
  override get mayEndAnswer(): boolean {
    return true;
  }
}

export const BYTE = {
  quote: 0x22,
  comma: 0x2c,
  minus: 0x2d,
  dot: 0x2e,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  openList: 0x5b,
  backslash: 0x5c,
  closeList: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const;

/** Returns the only byte of a set; -1 if it has several, or none. */
export function single(bytes: ReadonlySet<number>): number {
  const [first = -1] = bytes;
  return bytes.size === 1 ? first : -1;
}

/**
 * Tells whether a node or alternative has a value that may begin inside `depth` open objects and arrays without
 * exceeding `LIMITS.answerDepth`.
 */
export function canBeWritten({ size, height }: { size: number; height: number }, depth: number): boolean {
  return size < Infinity && depth + height <= LIMITS.answerDepth;
}

/** Tells whether a byte can occur in a number. Numbers are written without an exponent. */
export function isNumeric(byte: number): boolean {
  return (byte >= BYTE.zero && byte <= BYTE.nine) || byte === BYTE.minus || byte === BYTE.dot;
}

const ids = new WeakMap<object, number>();
let lastId = 0;

/** Returns a number that no other object has, for the keys of `FrameTable.frame`. */
export function idOf(thing: object): number {
  let id = ids.get(thing);
  if (id === undefined) {
    id = ++lastId;
    ids.set(thing, id);
  }
  return id;
}
