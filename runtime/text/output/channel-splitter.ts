import { type Said, safeLength, TextSplitter } from './text-splitter.ts';

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
export class ChannelSplitter extends TextSplitter {
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
