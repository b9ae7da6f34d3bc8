import { AssayError } from '../errors.ts';
import { pathTo } from '../param-path.ts';
import type { Finding } from './rules.ts';

/** Converts an issue of the value at `path` to the error that the caller gets. */
export function issueAt(path: string, { code, at = [], message }: Finding): AssayError {
  const param = at.reduce<string>(pathTo, path);
  return new AssayError(code, `${param || 'The request'} ${message}.`, param ? { param } : {});
}
