import { TooLarge } from '../fuel.ts';
import { refuse } from '../schema/problem.ts';
import { UnsupportedPattern } from '../text/pattern.ts';

/**
 * Returns the result of `work`. Where `work` throws because a rule is invalid, not supported or too large, refuses the
 * schema instead: throws an `AssayError` that names `path`.
 *
 * @param what the rule, as the subject of the message's sentence
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
