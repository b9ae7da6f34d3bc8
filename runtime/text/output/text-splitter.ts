/** Holds a part of a model's text that was split into reasoning and answer. */
export interface Said {
  reasoning: string;
  content: string;
}

/**
 * Holds the state that all splitters of streamed text share: the part that is being written, and the text that is
 * withheld.
 */
export abstract class TextSplitter {
  protected state: 'start' | 'header' | 'reasoning' | 'answer';
  protected held = '';

  /** @param inside true if the prompt has already opened the reasoning */
  constructor(inside: boolean) {
    this.state = inside ? 'reasoning' : 'start';
  }

  get thinking(): boolean {
    return this.state === 'reasoning';
  }

  get answering(): boolean {
    return this.state === 'answer';
  }

  /** True if text is withheld because it may begin a mark. */
  get withholds(): boolean {
    return this.held !== '';
  }

  /** Text so far of a header that is not complete; null outside of headers, and in formats without headers. */
  get header(): string | null {
    return this.state === 'header' ? this.held : null;
  }
}

/**
 * Returns the length of the part of `text` that certainly precedes the mark `close`: up to a possible beginning of the
 * mark, and without white space at its end.
 */
export function safeLength(text: string, close: string): number {
  return text.slice(0, text.length - overlap(text, close)).trimEnd().length;
}

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
