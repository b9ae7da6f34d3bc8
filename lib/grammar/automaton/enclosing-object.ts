import type { ObjectAlternative } from '../resolve/node.ts';
import type { Frame } from './frame.ts';

/** Represents the object that contains a member, as the frames that read member names see it. */
export interface EnclosingObject extends Frame {
  readonly shape: ObjectAlternative;
  /** Names of the undeclared members written so far. */
  readonly extras: readonly string[];
  /** Tells whether the declared member at this index can come next. */
  allows(index: number): boolean;
  /** Returns the object after the value of a declared member. */
  afterMember(index: number): Frame;
  /** Returns the object after the value of an undeclared member. */
  afterExtra(name: string): Frame;
}
