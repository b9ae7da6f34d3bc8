import type { ObjectAlternative } from '../resolve/node.ts';
import type { Frame } from './frame.ts';

/** Represents an object whose member's name is being read, as `KeyFrame` and `MemberNameFrame` see it. */
export interface EnclosingObject extends Frame {
  readonly shape: ObjectAlternative;
  /** Names of the undeclared members read so far. */
  readonly extras: readonly string[];
  /** Tells whether the declared member at this index of `shape.members` may come next. */
  allows(index: number): boolean;
  /** Returns the frame of this object after the value of its declared member at this index. */
  afterMember(index: number): Frame;
  /** Returns the frame of this object after the value of an undeclared member of this name. */
  afterExtra(name: string): Frame;
}
