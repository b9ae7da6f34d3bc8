/**
 * Formats a JSON value for the model: a string as it is, anything else as indented JSON with members in the order sent.
 */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
