import { type AnswerSplitter, answerSplitter } from '../answer-splitter.ts';
import { CHANNEL } from '../channel-splitter.ts';
import type { ReasoningFormat } from '../reasoning-format.ts';
import type { TextVocabulary } from '../vocabulary.ts';
import type { CallGrammar, CallStep } from './call-grammar.ts';

interface TriggerOptions {
  grammar: Pick<CallGrammar, 'trigger' | 'triggered'>;
  vocabulary: TextVocabulary;
  reasoning: ReasoningFormat;
  /** True if the prompt ends inside a reasoning block. */
  thinking: boolean;
}

/** Describes a call that begins: its steps, and the text of the first step that the model has already written. */
interface BegunCall {
  steps: readonly CallStep[];
  written: { trigger: string; after: string } | null;
}

/** Finds the beginning of a tool call in an answer's free text. Text inside reasoning never counts. */
export class CallTrigger {
  readonly #options: TriggerOptions;
  #splitter: AnswerSplitter;
  /** End of the answer so far, in which the trigger may have begun, with one character for each byte. */
  #answer = '';

  constructor(options: TriggerOptions) {
    this.#options = options;
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
    if ('control' in trigger) return null;
    if ('header' in trigger) {
      const { header } = this.#splitter;
      const at = header?.lastIndexOf(trigger.header) ?? -1;
      if (header === null || at < 0) return null;
      const written = { trigger: trigger.header, after: textOfBytes(header.slice(at + trigger.header.length)) };
      return { steps: header.includes(CHANNEL) ? trigger.inChannel : triggered, written };
    }
    const wanted = bytesText(new TextEncoder().encode(trigger.text));
    const seen = trigger.anywhere ? this.#answer + content : (this.#answer + content).trimStart();
    const at = seen.indexOf(wanted);
    if (at >= 0 && (trigger.anywhere || at === 0)) {
      const after = textOfBytes(seen.slice(at + wanted.length));
      return { steps: triggered, written: { trigger: trigger.text, after } };
    }
    this.#answer = trigger.anywhere ? seen.slice(-wanted.length) : seen.slice(0, wanted.length);
    return null;
  }

  fork(): CallTrigger {
    const copy = new CallTrigger(this.#options);
    copy.#splitter = this.#splitter.fork();
    copy.#answer = this.#answer;
    return copy;
  }
}

/** Returns a text with one character for each byte, because a token may end inside a character. */
function bytesText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}

function textOfBytes(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8');
}
