import type { TokenLogprob } from '../../lib/backend.ts';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import { type ChatDelta, type SampledToken, spellToken } from './chat-output.ts';
import { StopScanner } from './stop-scanner.ts';
import type { TextVocabulary } from './vocabulary.ts';

/** From sampled tokens to the text of an answer that a grammar bounds: what the grammar forced is in it, too. */
export class JsonOutput {
  readonly #vocabulary: TextVocabulary;
  readonly #constraint: Constraint;
  readonly #scanner: StopScanner;
  #written = '';
  #pending: TokenLogprob[] = [];

  constructor(vocabulary: TextVocabulary, constraint: Constraint, stops: readonly string[]) {
    this.#vocabulary = vocabulary;
    this.#constraint = constraint;
    this.#scanner = new StopScanner(stops);
  }

  get stopped(): boolean {
    return this.#scanner.stopped;
  }

  /** The text before this token; the token itself is the engine's to give to the grammar after this. */
  push(sampled: SampledToken): ChatDelta {
    const logprobs = this.#pending;
    this.#pending = sampled.logprob === undefined ? [] : [spellToken(this.#vocabulary, sampled, sampled.logprob)];
    const delta = this.#give(this.#settled());
    if (delta.content !== '') return { ...delta, logprobs };
    this.#pending.unshift(...logprobs);
    return delta;
  }

  /** The rest. Of a cut answer, what closes it is given too: the model did not say it, so a stop string in it stops nothing. */
  end(cut: boolean): ChatDelta {
    const delta = this.#give(cut ? this.#settled() : this.#constraint.text());
    const rest = this.#scanner.end();
    const closing = cut && !this.#scanner.stopped ? this.#constraint.closed().slice(this.#written.length) : '';
    return { ...delta, content: delta.content + rest + closing, logprobs: this.#pending };
  }

  /** The text that stays, whenever the answer is cut: without a character, a number, a literal or a name that is not whole yet. */
  #settled(): string {
    const text = this.#constraint.text();
    const closed = this.#constraint.closed();
    let same = 0;
    while (same < text.length && text[same] === closed[same]) same++;
    return text.slice(0, same);
  }

  #give(text: string): ChatDelta {
    const fresh = text.startsWith(this.#written) ? text.slice(this.#written.length) : '';
    this.#written += fresh;
    return { reasoning: '', content: this.#scanner.push(fresh), logprobs: [] };
  }
}
