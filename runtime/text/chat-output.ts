import type { TokenLogprob } from '../../lib/backend.ts';
import { Detokenizer } from './detokenizer.ts';
import { StopScanner } from './stop-scanner.ts';
import { type Said, ThinkSplitter } from './think-splitter.ts';
import type { TextVocabulary } from './vocabulary.ts';

/** A token as the engine reports it. */
export interface SampledToken {
  token: number;
  logprob?: number;
  top?: readonly { token: number; logprob: number }[];
}

export interface ChatDelta extends Said {
  /** One entry for each token of `content`; only where the engine reports them. */
  logprobs: readonly TokenLogprob[];
}

/**
 * From sampled tokens to what the caller of a chat reads: characters made whole, reasoning parted from the answer, the
 * answer cut before a stop string.
 */
export class ChatOutput {
  readonly #vocabulary: TextVocabulary;
  readonly #detokenizer: Detokenizer;
  readonly #splitter: ThinkSplitter;
  readonly #scanner: StopScanner;
  /** Log-probabilities of tokens whose text is held back, with where it ends in the answer. */
  #pending: { end: number; logprob: TokenLogprob }[] = [];
  #heard = 0;
  #given = 0;

  constructor(vocabulary: TextVocabulary, options: { stops: readonly string[]; thinking: boolean }) {
    this.#vocabulary = vocabulary;
    this.#detokenizer = new Detokenizer(vocabulary);
    this.#splitter = new ThinkSplitter(options.thinking);
    this.#scanner = new StopScanner(options.stops);
  }

  /** Whether a stop string ended the answer: no more tokens are wanted. */
  get stopped(): boolean {
    return this.#scanner.stopped;
  }

  push(sampled: SampledToken): ChatDelta {
    const thought = this.#splitter.thinking;
    const text = this.#detokenizer.push(sampled.token);
    const said = this.#splitter.push(text);
    this.#heard += said.content.length;
    // Blank space behind the thoughts is no part of the answer; a character that is not whole yet is.
    const dropped = said.content === '' && (thought || (this.#splitter.answering && text !== ''));
    if (this.#splitter.thinking) this.#pending = [];
    else if (sampled.logprob !== undefined && !dropped) {
      this.#pending.push({ end: this.#heard, logprob: spellToken(this.#vocabulary, sampled, sampled.logprob) });
    }
    return this.#give(said.reasoning, this.#scanner.push(said.content));
  }

  /** What was held back, when no more tokens come. */
  end(_cut?: boolean): ChatDelta {
    const last = this.#splitter.push(this.#detokenizer.end());
    const rest = this.#splitter.end();
    const content = this.#scanner.push(last.content + rest.content) + this.#scanner.end();
    return this.#give(last.reasoning + rest.reasoning, content);
  }

  #give(reasoning: string, content: string): ChatDelta {
    this.#given += content.length;
    const count = content === '' ? 0 : this.#pending.filter(({ end }) => end <= this.#given).length;
    return { reasoning, content, logprobs: this.#pending.splice(0, count).map(({ logprob }) => logprob) };
  }
}

/** A token with its alternatives as the interface reports them. */
export function spellToken(vocabulary: TextVocabulary, sampled: SampledToken, logprob: number): TokenLogprob {
  const spell = (token: number, value: number) => {
    const bytes = vocabulary.spelling(token);
    return { token: new TextDecoder().decode(bytes), logprob: value, bytes: [...bytes] };
  };
  const top = (sampled.top ?? []).map((other) => spell(other.token, other.logprob));
  return { ...spell(sampled.token, logprob), top };
}
