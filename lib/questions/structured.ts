import { stringifyAsWritten } from '../json/written-numbers.ts';

/** Formats a JSON value as text for the model: a string as it is, any other value as indented JSON. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : stringifyAsWritten(value, 2);
}
