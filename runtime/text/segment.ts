import type { Tokenizer } from './tokenizer.ts';

/** Describes a part of a prompt. Only `template` text may become control tokens; `user` text is always text. */
export interface Segment {
  text: string;
  trust: 'template' | 'user';
}

/** Encodes segments one by one. `before` holds the token ids in front of them. */
export function encodeSegments(
  tokenizer: Tokenizer,
  segments: readonly Segment[],
  before: readonly number[] = [],
): number[] {
  const ids: number[] = [];
  for (const { text, trust } of segments) {
    const previous = ids.at(-1) ?? before.at(-1);
    const continues = previous !== undefined && !tokenizer.control.has(previous);
    const encoded =
      trust === 'user' ? tokenizer.encodeUser(text, continues) : tokenizer.encodeTemplate(text, continues);
    for (const id of encoded) ids.push(id);
  }
  return ids;
}
