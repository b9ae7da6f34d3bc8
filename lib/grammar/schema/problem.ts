import { AssayError, type ErrorCode } from '../../errors.ts';

/** Says no to a schema. `path` is where in the request; the message says what to do instead. */
export function refuse(path: string, message: string, code: ErrorCode = 'unsupported_schema'): never {
  throw new AssayError(code, `${path}: ${message}`, { param: path });
}

/** A value as an error message names it. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

export function isObject(value: unknown): value is { readonly [key: string]: never } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
