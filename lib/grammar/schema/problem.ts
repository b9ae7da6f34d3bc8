import { AssayError, type ErrorCode } from '../../errors.ts';

/**
 * Throws the `AssayError` that refuses a part of a schema.
 *
 * @param path path of the part in the caller's input; the message begins with it, and `param` is it
 * @param message what is wrong and what to do instead, without the path
 */
export function refuse(path: string, message: string, code: ErrorCode = 'unsupported_schema'): never {
  throw new AssayError(code, `${path}: ${message}`, { param: path });
}

/** Formats a value as JSON for an error message, cut to 60 characters with `...` at the end. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
