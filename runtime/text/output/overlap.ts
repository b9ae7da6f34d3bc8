/**
 * Returns the length of the longest end of `text` with which `mark` begins, not counting the whole mark; 0 if there is
 * none. While a text is streamed, these characters have to wait, because the mark may follow.
 */
export function overlap(text: string, mark: string): number {
  for (let length = Math.min(text.length, mark.length - 1); length > 0; length--) {
    if (text.endsWith(mark.slice(0, length))) return length;
  }
  return 0;
}
