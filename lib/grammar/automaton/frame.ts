import type { Automaton } from './automaton.ts';

/**
 * One open part of the answer: a value about to begin, a string, a number, an object, a list. `parent` is what goes on when this part
 * has ended. Frames never change; a step makes others. Equal frames are the same frame (`Automaton.frame`).
 */
export abstract class Frame {
  readonly id: number;
  readonly automaton: Automaton;
  readonly parent: Frame | null;
  /** Objects and lists open around this part. */
  readonly depth: number;

  constructor(automaton: Automaton, parent: Frame | null, depth: number) {
    this.automaton = automaton;
    this.parent = parent;
    this.depth = depth;
    this.id = automaton.nextFrameId();
  }

  /** Adds the frames after one more byte to `into`; none where the byte is not possible. */
  abstract step(byte: number, into: Frame[]): void;

  /** The one byte that can come next; -1 where there may be several. */
  abstract forced(): number;
}

/** After the whole answer. */
export class EndFrame extends Frame {
  constructor(automaton: Automaton) {
    super(automaton, null, 0);
  }
  override step(): void {}
  override forced(): number {
    return -1;
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

/** Whether a byte may stand in a number as it is written here. */
export function isNumeric(byte: number): boolean {
  return (byte >= BYTE.zero && byte <= BYTE.nine) || byte === BYTE.minus || byte === BYTE.dot;
}

/** A number for each object, to put objects into keys. */
const ids = new WeakMap<object, number>();
let lastId = 0;
export function idOf(thing: object): number {
  let id = ids.get(thing);
  if (id === undefined) {
    id = ++lastId;
    ids.set(thing, id);
  }
  return id;
}
