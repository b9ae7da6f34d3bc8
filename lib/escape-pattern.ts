/** Escapes a text for use in the pattern of a regular expression, where it then matches exactly itself. */
export function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/gu, '\\$&');
}
