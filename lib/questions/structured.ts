/** Words JSON for the model: text as it is, anything else indented, members in the order sent. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
