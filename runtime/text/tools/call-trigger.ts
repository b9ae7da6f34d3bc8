import { type AnswerSplitter, answerSplitter, CHANNEL } from '../output/answer-splitter.ts';
import type { ReasoningFormat } from '../output/reasoning-format.ts';
import type { Trigger } from '../output/stop-scanner.ts';
import type { TextVocabulary } from '../tokenizer/vocabulary.ts';
import type { CallGrammar, CallStep } from './call-grammar.ts';

interface TriggerOptions {
  grammar: Pick<CallGrammar, 'trigger' | 'triggered' | 'bare'>;
  vocabulary: TextVocabulary;
  reasoning: ReasoningFormat;
  /** True if the prompt ends inside a reasoning block. */
  thinking: boolean;
}

/**
 * Describes a call that begins: its steps, and in `written` the text of the first step that the model has already
 * written, or null if the call begins with a control token.
 */
interface BegunCall {
  steps: readonly CallStep[];
  written: { trigger: string; after: string } | null;
}

/** Finds the beginning of a tool call in an answer's free text. Text inside reasoning never counts. */
export class CallTrigger {
  readonly #options: TriggerOptions;
  readonly #texts: readonly TextTrigger[];
  #splitter: AnswerSplitter;
  /** End of the answer so far, in which a trigger may have begun, with one character for each byte. */
  #answer = '';

  constructor(options: TriggerOptions) {
    this.#options = options;
    this.#texts = textTriggers(options.grammar);
    this.#splitter = answerSplitter(options.thinking, options.reasoning);
  }

  /** True once the answer has begun: after the reasoning, or at once if there is none. */
  get answering(): boolean {
    return this.#splitter.answering;
  }

  /** Tells whether a token is the control token that begins a call. Always false inside reasoning. */
  isTrigger(token: number): boolean {
    const { trigger } = this.#options.grammar;
    return 'control' in trigger && token === trigger.control && !this.#splitter.thinking;
  }

  /** Adds a token. Returns the call that begins if this token completes a trigger; null otherwise. */
  push(token: number): BegunCall | null {
    const { trigger, triggered } = this.#options.grammar;
    if (this.isTrigger(token)) return { steps: triggered, written: null };
    const { content } = this.#splitter.push(bytesText(this.#options.vocabulary.written(token)));
    if ('header' in trigger) {
      const { header } = this.#splitter;
      const at = header?.lastIndexOf(trigger.header) ?? -1;
      if (header === null || at < 0) return null;
      const written = { trigger: trigger.header, after: textOfBytes(header.slice(at + trigger.header.length)) };
      return { steps: header.includes(CHANNEL) ? trigger.inChannel : triggered, written };
    }
    return this.#textTrigger(content);
  }

  /** Adds text of the answer. Returns the call that the first text trigger in it begins; null if there is none. */
  #textTrigger(content: string): BegunCall | null {
    const seen = this.#answer + content;
    const found = this.#texts
      .map((trigger) => ({ ...trigger, at: seen.indexOf(trigger.bytes) }))
      .filter(({ at, anywhere }) => at >= 0 && (anywhere || seen.slice(0, at).trim() === ''))
      .sort((a, b) => a.at - b.at);
    const [first] = found;
    if (first) {
      const after = textOfBytes(seen.slice(first.at + first.bytes.length));
      return { steps: first.steps, written: { trigger: first.text, after } };
    }
    const longest = Math.max(0, ...this.#texts.map(({ bytes }) => bytes.length));
    const anywhere = this.#texts.some((trigger) => trigger.anywhere);
    this.#answer = anywhere ? seen.slice(-longest) : seen.trimStart().slice(0, longest);
    return null;
  }

  fork(): CallTrigger {
    const copy = new CallTrigger(this.#options);
    copy.#splitter = this.#splitter.fork();
    copy.#answer = this.#answer;
    return copy;
  }
}

interface TextTrigger extends Trigger {
  /** The text with one character for each byte. */
  bytes: string;
  /** Steps of the call that it begins, including the text. */
  steps: readonly CallStep[];
}

/** Returns the texts that begin a call in an answer, each with the steps of that call. */
export function textTriggers({ trigger, triggered, bare }: TriggerOptions['grammar']): TextTrigger[] {
  const texts = [...('text' in trigger ? [{ ...trigger, steps: triggered }] : []), ...(bare ? [bare] : [])];
  return texts.map((one) => ({ ...one, bytes: bytesText(new TextEncoder().encode(one.text)) }));
}

/** Returns a text with one character for each byte, because a token may end inside a character. */
function bytesText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}

function textOfBytes(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8');
}
