import type { ObjectAlternative } from '../resolve/node.ts';
import type { Frame } from './frame.ts';

/** Describes the object around a member's name, as the frames of names use it. */
export interface EnclosingObject extends Frame {
  readonly shape: ObjectAlternative;
  /** Names of the members written so far beyond the declared ones. */
  readonly extras: readonly string[];
  /** Tells whether the declared member at this index can come next. */
  allows(index: number): boolean;
  /** Returns the object after the value of a declared member. */
  afterMember(index: number): Frame;
  /** Returns the object after the value of another member. */
  afterExtra(name: string): Frame;
}
