import assert from 'node:assert/strict';
import { MAX_DEPTH } from '../../lib/json/scan.ts';

const STRING = /"(?:[^"\\]|\\.)*"/gs;

/**
 * Checks that the JSON reader was right to accept or refuse these bytes. Judges by `JSON.parse` and regular
 * expressions, which share no code with `lib/json/`: valid UTF-8 and JSON, at most `MAX_DEPTH` levels, no half of a
 * surrogate pair. Inputs of the fuzzer are too short to have too many members and items.
 */
export function checkVerdict(bytes: Uint8Array, accepted: boolean): void {
  assert.equal(accepted, isAcceptable(bytes), accepted ? 'the reader accepts this' : 'the reader refuses this');
}

function isAcceptable(bytes: Uint8Array): boolean {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    JSON.parse(text);
  } catch {
    return false;
  }
  const strings = text.match(STRING) ?? [];
  return depthOf(text.replace(STRING, '')) <= MAX_DEPTH && strings.every((one) => JSON.parse(one).isWellFormed());
}

function depthOf(structure: string): number {
  let [depth, most] = [0, 0];
  for (const sign of structure.match(/[[\]{}]/g) ?? []) {
    depth += sign === '[' || sign === '{' ? 1 : -1;
    most = Math.max(most, depth);
  }
  return most;
}
