/**
 * Returns the number of characters at the end of `text` that are also the beginning of `mark`. While a text is
 * streamed, these have to wait, because the mark may follow.
 */
export function overlap(text: string, mark: string): number {
  for (let length = Math.min(text.length, mark.length - 1); length > 0; length--) {
    if (text.endsWith(mark.slice(0, length))) return length;
  }
  return 0;
}
