import type { TokenLogprob } from '../../../lib/backend.ts';
import type { GrammarConstraint } from '../../../lib/grammar/grammar-constraint.ts';
import type { TextVocabulary } from '../tokenizer/vocabulary.ts';
import { type OutputDelta, type SampledToken, spellToken } from './chat-output.ts';
import { StopScanner } from './stop-scanner.ts';

type AnswerText = Pick<GrammarConstraint, 'text' | 'settled' | 'closed'>;

/** Converts sampled tokens to the text of an answer under a grammar, including the text that the grammar forces. */
export class JsonOutput {
  readonly #vocabulary: TextVocabulary;
  readonly #constraint: AnswerText;
  readonly #scanner: StopScanner;
  #written = '';
  #pending: TokenLogprob[] = [];

  constructor(vocabulary: TextVocabulary, constraint: AnswerText, stops: readonly string[]) {
    this.#vocabulary = vocabulary;
    this.#constraint = constraint;
    this.#scanner = new StopScanner(stops);
  }

  get stopped(): boolean {
    return this.#scanner.stopped;
  }

  /**
   * Returns the text before this token that is now final. The engine passes the token to the grammar only after this
   * call.
   */
  push(sampled: SampledToken): OutputDelta {
    const logprobs = this.#pending;
    this.#pending = sampled.logprob === undefined ? [] : [spellToken(this.#vocabulary, sampled, sampled.logprob)];
    const delta = this.#give(this.#constraint.settled());
    if (delta.content !== '') return { ...delta, logprobs };
    this.#pending.unshift(...logprobs);
    return delta;
  }

  /**
   * Adds tokens that the grammar forces, each with the log-probability 0, so that the tokens spell the answer.
   *
   * @param top true if alternatives are reported: the only one of a forced token is itself
   */
  force(tokens: readonly number[], top: boolean): void {
    for (const token of tokens) {
      const sampled = { token, ...(top ? { top: [{ token, logprob: 0 }] } : {}) };
      this.#pending.push(spellToken(this.#vocabulary, sampled, 0));
    }
  }

  /**
   * Returns the rest of the answer. If the answer was cut, the text that closes its JSON is added. The model did not
   * write that text, so stop strings do not apply to it.
   */
  end(cut: boolean): OutputDelta {
    const delta = this.#give(cut ? this.#constraint.settled() : this.#constraint.text());
    const rest = this.#scanner.end();
    const closing = cut && !this.#scanner.stopped ? this.#constraint.closed().slice(this.#written.length) : '';
    return { ...delta, content: delta.content + rest + closing, logprobs: this.#pending };
  }

  #give(text: string): OutputDelta {
    const fresh = text.startsWith(this.#written) ? text.slice(this.#written.length) : '';
    this.#written += fresh;
    return { reasoning: '', content: this.#scanner.push(fresh), logprobs: [] };
  }
}
