import type { TokenLogprob, ToolCallEvent } from '../../../lib/backend.ts';
import type { TextVocabulary } from '../tokenizer/vocabulary.ts';
import type { Said } from './answer-splitter.ts';
import { type AnswerSplitter, answerSplitter } from './answer-splitter.ts';
import type { ReasoningFormat } from './reasoning-format.ts';
import { StopScanner, type Trigger } from './stop-scanner.ts';

/** Describes a token that the engine sampled, with log-probabilities if they were requested. */
export interface SampledToken {
  token: number;
  logprob?: number;
  top?: readonly { token: number; logprob: number }[];
}

export interface OutputDelta extends Said {
  /** Log-probabilities of the tokens whose text `content` completes; empty if the engine reports none. */
  logprobs: readonly TokenLogprob[];
  /** New parts of tool calls; absent or empty if there are none. */
  calls?: readonly ToolCallEvent[];
}

/**
 * Converts sampled tokens to the text that a chat's caller reads: in whole characters, with reasoning separate from the
 * answer, and with the answer cut before a stop string.
 */
export class ChatOutput {
  readonly #vocabulary: TextVocabulary;
  readonly #detokenizer: Detokenizer;
  readonly #splitter: AnswerSplitter;
  readonly #scanner: StopScanner;
  /**
   * Log-probabilities of tokens whose text is still withheld, each with the offset in the answer at which its text
   * ends.
   */
  #pending: { end: number; logprob: TokenLogprob }[] = [];
  #received = 0;
  #returned = 0;

  constructor(
    vocabulary: TextVocabulary,
    options: { stops: readonly string[]; triggers?: readonly Trigger[]; thinking: boolean; format: ReasoningFormat },
  ) {
    this.#vocabulary = vocabulary;
    this.#detokenizer = new Detokenizer(vocabulary);
    this.#splitter = answerSplitter(options.thinking, options.format);
    this.#scanner = new StopScanner(options.stops, options.triggers);
  }

  /** True if a stop string ended the answer. No more tokens are needed then. */
  get stopped(): boolean {
    return this.#scanner.stopped;
  }

  /** True if the answer's text ended because a tool call begins. */
  get triggered(): boolean {
    return this.#scanner.triggered;
  }

  push(sampled: SampledToken): OutputDelta {
    const thought = this.#splitter.thinking;
    const text = this.#detokenizer.push(sampled.token);
    const said = this.#splitter.push(text);
    this.#received += said.content.length;
    // Only tokens of the answer keep their log-probabilities. A token of a header, or of white space after the
    // reasoning, is not part of it; a token that only begins a character is.
    const { answering, header, withholds } = this.#splitter;
    const dropped = said.content === '' && (thought || header !== null || (answering && text !== '' && !withholds));
    if (this.#splitter.thinking) this.#pending = [];
    else if (sampled.logprob !== undefined && !dropped) {
      this.#pending.push({ end: this.#received, logprob: spellToken(this.#vocabulary, sampled, sampled.logprob) });
    }
    return this.#give(said.reasoning, this.#scanner.push(said.content));
  }

  /** Returns the text that is still withheld. Must follow the last `push`. */
  end(_cut?: boolean): OutputDelta {
    const last = this.#splitter.push(this.#detokenizer.end());
    const rest = this.#splitter.end();
    const content = this.#scanner.push(last.content + rest.content) + this.#scanner.end();
    return this.#give(last.reasoning + rest.reasoning, content);
  }

  #give(reasoning: string, content: string): OutputDelta {
    this.#returned += content.length;
    const count = content === '' ? 0 : this.#pending.filter(({ end }) => end <= this.#returned).length;
    return { reasoning, content, logprobs: this.#pending.splice(0, count).map(({ logprob }) => logprob) };
  }
}

/** Returns a token and its alternatives as the API reports them: with their text and bytes. */
export function spellToken(vocabulary: TextVocabulary, sampled: SampledToken, logprob: number): TokenLogprob {
  const spell = (token: number, value: number) => {
    const bytes = vocabulary.spelling(token);
    return { token: new TextDecoder().decode(bytes), logprob: value, bytes: [...bytes] };
  };
  const top = (sampled.top ?? []).map((other) => spell(other.token, other.logprob));
  return { ...spell(sampled.token, logprob), top };
}

/**
 * Converts a stream of tokens to text, without the space that the tokenizer puts in front. If a character consists of
 * several tokens, withholds its bytes until it is complete.
 */
class Detokenizer {
  readonly #vocabulary: TextVocabulary;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #atStart = true;

  constructor(vocabulary: TextVocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Returns the text that this token completes. Bytes that cannot become a character are replaced by U+FFFD. */
  push(token: number): string {
    return this.#begin(this.#decoder.decode(this.#vocabulary.written(token), { stream: true }));
  }

  /** Returns U+FFFD for an incomplete character at the end; empty if there is none. */
  end(): string {
    return this.#begin(this.#decoder.decode());
  }

  #begin(text: string): string {
    if (!this.#atStart || text === '') return text;
    this.#atStart = false;
    return this.#vocabulary.leadingSpace && text.startsWith(' ') ? text.slice(1) : text;
  }
}
