import { at } from '../at.ts';
import type { Masks } from '../grammar/vocabulary/masks.ts';

export interface OptionPath {
  option: number;
  /** The tokens after the head. */
  tokens: readonly number[];
  /** The answer up to the end of this path. */
  text: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Returns the token paths of options, for a choice by total log-probability. Each whole answer is tokenized as the
 * model would write it; their common beginning is the head. A path runs one character beyond the option's closing
 * quote, so that `red` and `red wine` differ, and to the end of that token.
 *
 * @param reason true if a reason may follow. Then every option has two paths, one up to `}` and one up to `,`, as the
 * model would write them; a path that ended at the bare quote would score a token that models hardly ever write there.
 */
export function optionPaths(
  options: readonly string[],
  reason: boolean,
  masks: Masks,
): { head: readonly number[]; paths: readonly OptionPath[] } {
  const endings = reason ? ['}', ',"reason":"'] : ['}'];
  const whole = options.flatMap((value, option) =>
    endings.map((ending) => {
      const settled = `{"value":${JSON.stringify(value)}${ending[0]}`;
      const text = encoder.encode(settled + ending.slice(1));
      const tokens: number[] = [];
      let length = 0;
      for (const token of masks.tokenise(text)) {
        if (length >= encoder.encode(settled).length) break;
        tokens.push(token);
        length += masks.vocabulary.bytes(token)!.length;
      }
      return { option, tokens, text: decoder.decode(text.subarray(0, length)) };
    }),
  );
  const first = at(whole, 0).tokens;
  let shared = 0;
  while (whole.every(({ tokens }) => shared < tokens.length - 1 && tokens[shared] === first[shared])) shared++;
  return { head: first.slice(0, shared), paths: whole.map((path) => ({ ...path, tokens: path.tokens.slice(shared) })) };
}
