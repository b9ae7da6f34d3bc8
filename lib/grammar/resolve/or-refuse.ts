import { TooLarge } from '../fuel.ts';
import { refuse } from '../schema/problem.ts';
import { UnsupportedPattern } from '../text/pattern.ts';

/**
 * Returns the result of `work`. If `work` throws a `SyntaxError`, refuses the schema with `invalid_value`; if it throws
 * `TooLarge` or `UnsupportedPattern`, with `unsupported_schema`. Other errors are passed on.
 *
 * @param path path of the refused part, which the error names
 * @param what names the rule: the subject of the sentence in the message
 */
export function orRefuse<T>(path: string, work: () => T, what = 'this string'): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof SyntaxError) {
      refuse(path, `${what} is not a valid regular expression (ECMA-262 with the u flag).`, 'invalid_value');
    }
    if (error instanceof TooLarge) refuse(path, `${what} ${error.message}.`);
    if (error instanceof UnsupportedPattern) {
      refuse(
        path,
        `${what} ${error.message}, which cannot be enforced while an answer is generated; write it without that.`,
      );
    }
    throw error;
  }
}
