import { TooLarge } from '../fuel.ts';
import { refuse } from '../schema/problem.ts';
import { UnsupportedPattern } from '../text/pattern.ts';

/**
 * Returns the result of `work`. If `work` throws because a rule is invalid, not supported or too large, throws an
 * `AssayError` instead that refuses the schema and names `path`.
 *
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
