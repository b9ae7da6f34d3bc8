import { AssayError } from '../errors.ts';
import { pathTo } from '../param-path.ts';
import type { Finding } from './rules.ts';

/**
 * Returns the error for an issue of the value at `path`. Its `param` is the path of the invalid value, absent for the
 * whole request.
 */
export function issueAt(path: string, { code, at = [], message }: Finding): AssayError {
  const param = at.reduce<string>(pathTo, path);
  return new AssayError(code, `${param || 'The request'} ${message}.`, param ? { param } : {});
}
