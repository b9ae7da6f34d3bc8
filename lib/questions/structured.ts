import { stringifyAsWritten } from '../json/written-numbers.ts';

/**
 * Formats a JSON value as text for the model: a string as it is, any other value as one line of JSON. Its author would
 * write `, ` and `: `, as Python does; with the starter model, questions about such a line are answered better than
 * about indented JSON.
 */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : stringifyAsWritten(value, true);
}
