import { readFile } from 'node:fs/promises';
import * as v from 'valibot';

const Wanted = v.pipe(v.array(v.pipe(v.array(v.string()), v.minLength(1))), v.minLength(1));
const Talk = v.object({ context: v.string(), questions: v.array(v.object({ ask: v.string(), words: Wanted })) });

/**
 * Holds a text with questions that a user might ask about it. `words` has lists of words; a right answer contains at
 * least one word of each list.
 */
export type Talk = v.InferOutput<typeof Talk>;

/** Reads `sets/chat.jsonl`, which has a text on each line. It was written by hand and is not used for training. */
export async function readChatSet(): Promise<Talk[]> {
  const file = await readFile(new URL('sets/chat.jsonl', import.meta.url), 'utf8');
  return file
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => v.parse(Talk, JSON.parse(line)));
}

/**
 * Tells whether an answer contains one word of each list, as a whole word and in any letter case. `swim*` also matches
 * "swimming".
 */
export function says(answer: string, wanted: Talk['questions'][number]['words']): boolean {
  return wanted.every((either) => either.some((word) => pattern(word).test(answer)));
}

const LETTER = String.raw`[\p{L}\p{N}]`;

function pattern(word: string): RegExp {
  const open = word.endsWith('*');
  const text = (open ? word.slice(0, -1) : word).replace(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
  return new RegExp(`(?<!${LETTER})${text}${open ? '' : `(?!${LETTER})`}`, 'iu');
}
