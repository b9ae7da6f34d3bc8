const OPEN = '<think>';
const CLOSE = '</think>';

export interface Said {
  reasoning: string;
  content: string;
}

/**
 * Splits streamed text into reasoning and answer, also when a tag is split between chunks. Only a block at the very
 * beginning counts; a later `<think>` is text. White space around the tags belongs to neither part.
 */
export class ThinkSplitter {
  #state: 'start' | 'reasoning' | 'answer';
  #held = '';
  #spoken = false;

  /** @param inside true when the prompt has already opened the block */
  constructor(inside: boolean) {
    this.#state = inside ? 'reasoning' : 'start';
  }

  get thinking(): boolean {
    return this.#state === 'reasoning';
  }

  get answering(): boolean {
    return this.#state === 'answer';
  }

  push(text: string): Said {
    this.#held += text;
    const said: Said = { reasoning: '', content: '' };
    if (this.#state === 'start') this.#begin();
    if (this.#state === 'reasoning') said.reasoning = this.#think();
    if (this.#state === 'answer') said.content = this.#speak(this.#take(this.#held.length));
    return said;
  }

  /** Returns the withheld text, when no more text follows. */
  end(): Said {
    const rest = this.#take(this.#held.length);
    if (this.#state === 'reasoning') return { reasoning: this.#speak(rest).trimEnd(), content: '' };
    return { reasoning: '', content: this.#state === 'start' ? rest : this.#speak(rest) };
  }

  #begin(): void {
    const text = this.#held.trimStart();
    if (text.startsWith(OPEN)) {
      this.#held = text.slice(OPEN.length);
      this.#state = 'reasoning';
    } else if (!OPEN.startsWith(text)) {
      // No block: white space at the beginning belongs to the answer.
      this.#spoken = true;
      this.#state = 'answer';
    }
  }

  #think(): string {
    const at = this.#held.indexOf(CLOSE);
    if (at < 0) return this.#speak(this.#take(safeLength(this.#held)));
    const thought = this.#speak(this.#take(at)).trimEnd();
    this.#held = this.#held.slice(CLOSE.length);
    this.#state = 'answer';
    this.#spoken = false;
    return thought;
  }

  /** Drops white space until the part has begun. */
  #speak(text: string): string {
    const spoken = this.#spoken ? text : text.trimStart();
    this.#spoken ||= spoken !== '';
    return spoken;
  }

  #take(length: number): string {
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return text;
  }
}

/**
 * Returns the length of `text` without an end that may be white space before the closing tag, or the tag's beginning.
 */
function safeLength(text: string): number {
  const tag = text.lastIndexOf('<');
  const end = tag >= 0 && CLOSE.startsWith(text.slice(tag)) ? tag : text.length;
  return text.slice(0, end).trimEnd().length;
}
