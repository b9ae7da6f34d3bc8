import { at } from '../at.ts';
import { ArrayFrame } from './automaton/array-frame.ts';
import type { State } from './automaton/automaton.ts';
import { BYTE, type Frame, OpenFrame } from './automaton/frame.ts';
import { FreshTextFrame } from './automaton/fresh-text-frame.ts';
import { LiteralFrame } from './automaton/literal-frame.ts';
import { FreshNumberFrame, NumberFrame } from './automaton/number-frame.ts';
import { ColonFrame, ObjectFrame } from './automaton/object-frame.ts';
import { StringFrame } from './automaton/string-frame.ts';
import { pendingBytes } from './automaton/text-bytes.ts';
import { ValueFrame } from './automaton/value-frame.ts';

/**
 * Maps names of required members of the root to the JSON text that is written for them if the answer is cut before
 * them. A member that is not in the map becomes null.
 */
export type Missing = ReadonlyMap<string, string>;

/**
 * Returns the text of an answer that was cut, completed to valid JSON (docs/interface.md, D-29). A string ends after
 * its last complete character. An unfinished number, `enum` value or name is removed. Required members that were not
 * reached become null, or what `missing` has for them.
 *
 * @param bytes the text so far
 * @param state the automaton's state after the text
 * @param missing JSON text of the root's required members that were not reached, where it is not null
 */
export function close(bytes: Uint8Array, state: State, missing: Missing): string {
  if (state.complete) return decode(bytes);
  // All frames have read the same text. A frame inside a string is preferred, because less of the text is removed.
  const top = state.frames.find((frame) => frame instanceof StringFrame) ?? at(state.frames, 0);
  const open = containers(top);
  if (open.length === 0) return emptyRoot(top, missing);
  let text = decode(bytes.subarray(0, bytes.length - unsettledBytes(top)));
  const literal = top instanceof LiteralFrame && !top.isName;
  const value = top instanceof ValueFrame || top instanceof NumberFrame || literal;
  if (top instanceof StringFrame) text += '"';
  else if (value && open[0] instanceof ObjectFrame) text += missingText(open[0], open[0].index - 1, missing);
  // The removed part followed a comma, unless it was the first in its object or array.
  else if (text.endsWith(',')) text = text.slice(0, -1);
  for (const frame of open) text += rest(frame, text, missing);
  return text;
}

/**
 * Returns the length in bytes of the beginning of the text that stays part of the answer, however it continues and
 * wherever it is cut: every reading of the text keeps it, and so does `close`.
 */
export function settledLength(bytes: Uint8Array, state: State): number {
  return Math.min(...state.frames.map((frame) => settledBy(frame, bytes)));
}

function settledBy(frame: Frame, bytes: Uint8Array): number {
  const length = bytes.length - unsettledBytes(frame);
  // `close` removes a comma after which nothing follows.
  return !(frame instanceof StringFrame) && bytes[length - 1] === BYTE.comma ? length - 1 : length;
}

/** Returns the objects and arrays around a frame, the innermost first. */
function containers(top: Frame): (ObjectFrame | ArrayFrame)[] {
  const open: (ObjectFrame | ArrayFrame)[] = [];
  for (let frame = top; frame instanceof OpenFrame; frame = frame.after) {
    if (frame instanceof ObjectFrame || frame instanceof ArrayFrame) open.push(frame);
  }
  return open;
}

/** Returns the number of bytes at the end of the text that belong to an unfinished part and are removed. */
function unsettledBytes(top: Frame): number {
  if (top instanceof StringFrame) return pendingBytes(top.place.pending);
  if (top instanceof NumberFrame || top instanceof FreshNumberFrame) return top.text.length;
  if (top instanceof LiteralFrame) return top.length + (top.isName ? 1 : 0);
  // A string that must differ from others is removed, because its beginning may be one of them.
  if (top instanceof FreshTextFrame) return lengthOf(top.text) - 1 + pendingBytes(top.place.pending);
  return top instanceof ColonFrame ? lengthOf(top.name) : 0;
}

/** Returns the number of bytes of a name as JSON text. */
function lengthOf(name: string): number {
  return new TextEncoder().encode(JSON.stringify(name)).length;
}

/** Returns the text that closes an object or array, including the required members that an object still lacks. */
function rest(frame: ObjectFrame | ArrayFrame, before: string, missing: Missing): string {
  if (frame instanceof ArrayFrame) return String.fromCharCode(BYTE.closeList);
  let text = '';
  for (let i = frame.index; i < frame.shape.members.length; i++) {
    const { name, required } = at(frame.shape.members, i);
    if (!required) continue;
    const comma = text === '' && before.endsWith('{') ? '' : ',';
    text += `${comma}${JSON.stringify(name)}:${missingText(frame, i, missing)}`;
  }
  return `${text}}`;
}

/** Returns the JSON text to write for the member at `index`, which was not reached. */
function missingText({ shape, depth }: ObjectFrame, index: number, missing: Missing): string {
  const name = shape.members[index]?.name;
  return (depth === 1 && name !== undefined && missing.get(name)) || 'null';
}

/** Returns the answer to report if there is no text yet: an object with only its required members. */
function emptyRoot(top: Frame, missing: Missing): string {
  if (!(top instanceof ValueFrame)) return '{}';
  const shape = top.node.alternatives.find((one) => one.kind === 'object');
  return shape?.kind === 'object' ? `{${rest(ObjectFrame.first(shape, top.after, 1), '{', missing)}` : '{}';
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
}
