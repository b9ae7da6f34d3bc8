import { at } from '../at.ts';
import type { Masks } from '../grammar/vocabulary/masks.ts';

/** Describes a way to write one option. */
export interface OptionPath {
  /** Index of the option. */
  option: number;
  /** The tokens after `head`, the tokens that all answers begin with. */
  tokens: readonly number[];
  /** The text of the answer from its beginning to the end of this path. */
  text: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Returns the token paths by whose total log-probability options are compared. The whole answer of each option is
 * tokenized as the model would write it. `head` has the tokens that all answers begin with, `paths` the tokens after
 * them. A path ends with the token that contains the character after the option's closing quote, so no path is a prefix
 * of another.
 *
 * @param reason true if a reason may follow. Every option then has two paths, one that ends with `}` and one with `,`.
 *   A path that ended with the bare quote would score a token that models hardly ever write there.
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
