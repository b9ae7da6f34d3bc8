import { AssayError, type ErrorCode } from '../../errors.ts';

/** Refuses a schema. `path` is its path in the caller's input; the message says what to do instead. */
export function refuse(path: string, message: string, code: ErrorCode = 'unsupported_schema'): never {
  throw new AssayError(code, `${path}: ${message}`, { param: path });
}

/** Formats a value for an error message. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

export function isObject(value: unknown): value is { readonly [key: string]: never } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
