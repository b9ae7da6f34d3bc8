import type { ReasoningFormat } from '../reasoning-format.ts';
import { ThinkSplitter } from '../think-splitter.ts';
import type { TextVocabulary } from '../vocabulary.ts';
import type { CallGrammar } from './call-grammar.ts';

interface TriggerOptions {
  grammar: Pick<CallGrammar, 'trigger'>;
  vocabulary: TextVocabulary;
  reasoning: ReasoningFormat;
  /** True if the prompt has opened a reasoning block. */
  thinking: boolean;
}

/** Finds the beginning of a call in an answer's free text. What looks like one inside reasoning is none. */
export class CallTrigger {
  readonly #options: TriggerOptions;
  #splitter: ThinkSplitter;
  /** The answer so far, a character for each byte; only as much as the trigger needs. */
  #answer = '';

  constructor(options: TriggerOptions) {
    this.#options = options;
    this.#splitter = new ThinkSplitter(options.thinking, options.reasoning);
  }

  /** True after the reasoning, or when there is none. */
  get answering(): boolean {
    return this.#splitter.answering;
  }

  /** Tells whether a token alone begins a call. */
  isTrigger(token: number): boolean {
    const { trigger } = this.#options.grammar;
    return 'control' in trigger && token === trigger.control && !this.#splitter.thinking;
  }

  /** Reads a token. Returns the text after a trigger that it completes; null if it completes none. */
  push(token: number): string | null {
    const { trigger } = this.#options.grammar;
    if (this.isTrigger(token)) return '';
    const { content } = this.#splitter.push(bytesText(this.#options.vocabulary.written(token)));
    if ('control' in trigger) return null;
    const wanted = bytesText(new TextEncoder().encode(trigger.text));
    const seen = trigger.anywhere ? this.#answer + content : (this.#answer + content).trimStart();
    const at = seen.indexOf(wanted);
    if (at >= 0 && (trigger.anywhere || at === 0)) return textOfBytes(seen.slice(at + wanted.length));
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

/** Returns a text with a character for each byte, so that a character in two tokens does not matter. */
function bytesText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}

function textOfBytes(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8');
}
