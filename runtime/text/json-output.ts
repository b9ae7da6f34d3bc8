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
    // A character that is not whole yet shows as U+FFFD at the end.
    const delta = this.#give(this.#constraint.text().replace(/\uFFFD+$/u, ''));
    if (delta.content !== '') return { ...delta, logprobs };
    this.#pending.unshift(...logprobs);
    return delta;
  }

  /** The rest. Of a cut answer, what closes it is given too, where that goes on from what was already given. */
  end(cut: boolean): ChatDelta {
    const delta = this.#give(cut ? this.#constraint.closed() : this.#constraint.text());
    const rest = this.#scanner.end();
    return { ...delta, content: delta.content + rest, logprobs: this.#pending };
  }

  #give(text: string): ChatDelta {
    const fresh = text.startsWith(this.#written) ? text.slice(this.#written.length) : '';
    this.#written += fresh;
    return { reasoning: '', content: this.#scanner.push(fresh), logprobs: [] };
  }
}
