import { ChannelSplitter } from './channel-splitter.ts';
import type { ReasoningFormat } from './reasoning-format.ts';
import { type Said, safeLength, TextSplitter } from './text-splitter.ts';

/** Splits a model's streamed text into reasoning and answer. */
export type AnswerSplitter = ThinkSplitter | ChannelSplitter;

/**
 * Creates the splitter for a reasoning format.
 *
 * @param inside true if the prompt has already opened the reasoning
 */
export function answerSplitter(inside: boolean, format: ReasoningFormat): AnswerSplitter {
  return format.channels ? new ChannelSplitter(inside) : new ThinkSplitter(inside, format);
}

type Marks = Pick<ReasoningFormat, 'open' | 'close'>;

/**
 * Splits streamed text into reasoning and answer, even if a tag is split between chunks. Only a reasoning block at the
 * very beginning counts; a later one is text. White space around the tags belongs to neither part.
 */
class ThinkSplitter extends TextSplitter {
  #spoken = false;
  readonly #format: Marks;

  /** @param inside true if the prompt has already opened the reasoning block */
  constructor(inside: boolean, format: Marks) {
    super(inside);
    this.#format = format;
  }

  fork(): ThinkSplitter {
    const copy = new ThinkSplitter(false, this.#format);
    copy.state = this.state;
    copy.held = this.held;
    copy.#spoken = this.#spoken;
    return copy;
  }

  push(text: string): Said {
    this.held += text;
    const said: Said = { reasoning: '', content: '' };
    if (this.state === 'start') this.#begin();
    if (this.state === 'reasoning') said.reasoning = this.#think();
    if (this.state === 'answer') said.content = this.#speak(this.#take(this.held.length));
    return said;
  }

  /** Returns the text that is still withheld. Must follow the last `push`. */
  end(): Said {
    const rest = this.#take(this.held.length);
    if (this.state === 'reasoning') return { reasoning: this.#speak(rest).trimEnd(), content: '' };
    return { reasoning: '', content: this.state === 'start' ? rest : this.#speak(rest) };
  }

  #begin(): void {
    const { open } = this.#format;
    const text = this.held.trimStart();
    if (text.startsWith(open)) {
      this.held = text.slice(open.length);
      this.state = 'reasoning';
    } else if (!open.startsWith(text)) {
      // Without a block, white space at the beginning belongs to the answer.
      this.#spoken = true;
      this.state = 'answer';
    }
  }

  #think(): string {
    const { close } = this.#format;
    const at = this.held.indexOf(close);
    if (at < 0) return this.#speak(this.#take(safeLength(this.held, close)));
    const thought = this.#speak(this.#take(at)).trimEnd();
    this.held = this.held.slice(close.length);
    this.state = 'answer';
    this.#spoken = false;
    return thought;
  }

  /** Removes white space at the beginning of the reasoning or the answer. */
  #speak(text: string): string {
    const spoken = this.#spoken ? text : text.trimStart();
    this.#spoken ||= spoken !== '';
    return spoken;
  }

  #take(length: number): string {
    const text = this.held.slice(0, length);
    this.held = this.held.slice(length);
    return text;
  }
}
