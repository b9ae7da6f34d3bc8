import type { ReasoningFormat } from './reasoning-format.ts';

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

/** Text before the name of the channel, in a message's header. */
export const CHANNEL = '<|channel|>';
const BODY = '<|message|>';
/** Text between a message and the header of the next one. */
const NEXT = '<|end|><|start|>';
/** Text before the recipient in a message's header. A recipient is a tool. */
export const RECIPIENT = 'to=';

/**
 * Splits streamed text into reasoning and answer, for models that write messages to channels (GPT-OSS). The channel
 * `analysis` is reasoning, all others are the answer; headers belong to neither. Messages of the same kind are joined
 * by a blank line. Source: OpenAI, "Harmony response format".
 */
class ChannelSplitter extends TextSplitter {
  /** Separator before the next text of each kind: a blank line after a message of that kind, otherwise empty. */
  #gap: Said = { reasoning: '', content: '' };
  /** True if some text of the current message was returned. */
  #spoken = false;

  fork(): ChannelSplitter {
    const copy = new ChannelSplitter(false);
    copy.state = this.state;
    copy.held = this.held;
    copy.#gap = { ...this.#gap };
    copy.#spoken = this.#spoken;
    return copy;
  }

  push(text: string): Said {
    this.held += text;
    const said: Said = { reasoning: '', content: '' };
    while (this.#advance(said));
    return said;
  }

  /** Returns the text that is still withheld, without an incomplete header. Must follow the last `push`. */
  end(): Said {
    const said: Said = { reasoning: '', content: '' };
    if (this.state === 'start') said.content = this.held;
    else if (this.state !== 'header') this.#speak(said, this.held);
    this.held = '';
    return { ...said, reasoning: said.reasoning.trimEnd() };
  }

  /** Reads up to the next mark. Returns false if more text is needed. */
  #advance(said: Said): boolean {
    if (this.state === 'start') return this.#begin();
    if (this.state === 'header') {
      const at = this.held.indexOf(BODY);
      if (at < 0) return false;
      this.state = this.held.slice(0, at).includes(`${CHANNEL}analysis`) ? 'reasoning' : 'answer';
      this.held = this.held.slice(at + BODY.length);
      this.#spoken = false;
      return true;
    }
    const at = this.held.indexOf(NEXT);
    const length = at < 0 ? safeLength(this.held, NEXT) : at;
    const text = this.held.slice(0, length);
    this.#speak(said, at < 0 ? text : text.trimEnd());
    this.held = this.held.slice(length);
    if (at < 0) return false;
    const kind = this.state === 'reasoning' ? 'reasoning' : 'content';
    if (this.#spoken) this.#gap[kind] = '\n\n';
    this.held = this.held.slice(NEXT.length);
    this.state = 'header';
    return true;
  }

  #begin(): boolean {
    const text = this.held.trimStart();
    if (text.startsWith(CHANNEL) || text.startsWith(RECIPIENT)) this.state = 'header';
    else if (CHANNEL.startsWith(text) || RECIPIENT.startsWith(text)) return false;
    else {
      // A text without a header is an answer.
      this.state = 'answer';
      this.#spoken = true;
    }
    return true;
  }

  /** Adds text of the current message, without white space at its beginning. */
  #speak(said: Said, text: string): void {
    const kind = this.state === 'reasoning' ? 'reasoning' : 'content';
    const spoken = this.#spoken ? text : text.trimStart();
    if (spoken === '') return;
    this.#spoken = true;
    said[kind] += this.#gap[kind] + spoken;
    this.#gap[kind] = '';
  }
}
