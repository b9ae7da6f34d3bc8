import type { State } from './automaton/automaton.ts';
import { BYTE } from './automaton/frame.ts';
import { FreshTextFrame } from './automaton/fresh-text-frame.ts';
import { RawTextFrame } from './automaton/raw-text-frame.ts';
import { StringFrame } from './automaton/string-frame.ts';
import type { Masks } from './vocabulary/masks.ts';
import { descend } from './vocabulary/trie.ts';

/** Tells whether a state is inside a string, a raw text or a name. */
export function inString({ frames }: State): boolean {
  return frames.some(
    (frame) => frame instanceof StringFrame || frame instanceof RawTextFrame || frame instanceof FreshTextFrame,
  );
}

/** Returns the frames of a state if all of them read a string with a pattern or format; null otherwise. */
export function stringsWithRules({ frames }: State): readonly StringFrame[] | null {
  const strings = frames.filter((frame) => frame instanceof StringFrame);
  return strings.length === frames.length && strings.every(({ language }) => language.dfa) ? strings : null;
}

/**
 * Marks in `into` only the tokens that end the current string or raw text, or that bring a string with a pattern or
 * format nearer to its end. Returns false if there are none.
 *
 * @param into bit mask of the vocabulary, one bit for each token
 */
export function fillEnding(masks: Masks, state: State, into: Uint32Array): boolean {
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
