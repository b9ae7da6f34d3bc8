import { at } from '../../../lib/at.ts';
import type { Constraint } from '../../../lib/grammar/constraint.ts';
import { addMask, clearBit, setBit } from '../../../lib/grammar/vocabulary/token-mask.ts';
import { MOST_CALLS } from '../../../lib/schema/chat-tools.ts';
import type { ReasoningFormat } from '../output/reasoning-format.ts';
import type { TextVocabulary } from '../tokenizer/vocabulary.ts';
import type { CallGrammar, CallStep } from './call-grammar.ts';
import { CallTrigger } from './call-trigger.ts';
import { CallWriter } from './call-writer.ts';

export interface ToolConstraintOptions {
  grammar: CallGrammar;
  vocabulary: TextVocabulary;
  reasoning: ReasoningFormat;
  /** True if the prompt ends inside a reasoning block. */
  thinking: boolean;
  /** Token that opens a reasoning block; null if the model opens none itself, or opens it with several tokens. */
  open: number | null;
}

/**
 * Describes the alternative to a call: reasoning, which the token `open` begins, or the end of the answer, perhaps
 * after the text of `ending`.
 */
type Instead = { open: number } | { ending: CallWriter | null };

type Phase =
  | { is: 'free' }
  /** The next token begins either `call` or the alternative `instead`. */
  | { is: 'choosing'; call: CallWriter; instead: Instead }
  | { is: 'calling'; call: CallWriter }
  | { is: 'ended' };

/**
 * Allows free text before the first tool call (only reasoning if a call is forced), and restricts calls to the names of
 * the tools and the schemas of their arguments.
 */
export class ToolConstraint implements Constraint {
  readonly #options: ToolConstraintOptions;
  #phase: Phase = { is: 'free' };
  #trigger: CallTrigger;
  #calls: CallWriter[] = [];

  constructor(options: ToolConstraintOptions) {
    this.#options = options;
    const { grammar, thinking, open } = options;
    this.#trigger = new CallTrigger(options);
    if (!grammar.forced || thinking) return;
    if (open === null) this.#call(this.#writer(grammar.first));
    else this.#phase = { is: 'choosing', call: this.#writer(grammar.first), instead: { open } };
  }

  /** Calls written so far, in order; the last one may be incomplete. */
  get calls(): readonly Pick<CallWriter, 'tool' | 'arguments' | 'argumentsEnded'>[] {
    return this.#calls;
  }

  /** Tells whether a token that is not accepted yet belongs to a call. */
  inCall(token: number): boolean {
    const phase = this.#phase;
    if (phase.is === 'free') return this.#trigger.isTrigger(token);
    return phase.is !== 'choosing' || this.#calls.length > 0 || phase.call.accepts(token);
  }

  get complete(): boolean {
    return this.#phase.is === 'ended';
  }

  takeForced(): number[] {
    if (this.#phase.is !== 'calling') return [];
    const { call } = this.#phase;
    const tokens = call.takeForced();
    this.#afterCall(call);
    return tokens;
  }

  mask(into: Uint32Array): void {
    const { vocabulary, grammar } = this.#options;
    const phase = this.#phase;
    if (phase.is === 'free') {
      into.fill(0xffffffff);
      // A forced call comes after the reasoning, so the answer must not end before it.
      if (grammar.forced) for (const token of vocabulary.end) clearBit(into, token);
    } else if (phase.is !== 'ended') phase.call.mask(into);
    if (phase.is !== 'choosing') return;
    if ('open' in phase.instead) setBit(into, phase.instead.open);
    else {
      for (const token of vocabulary.end) setBit(into, token);
      if (!phase.instead.ending) return;
      const ending = new Uint32Array(into.length);
      phase.instead.ending.mask(ending);
      addMask(into, ending);
    }
  }

  accept(token: number): void {
    const phase = this.#phase;
    if (phase.is === 'free') this.#acceptFree(token);
    else if (phase.is === 'calling' || (phase.is === 'choosing' && phase.call.accepts(token))) {
      if (phase.is === 'choosing') this.#call(phase.call);
      phase.call.accept(token);
      this.#afterCall(phase.call);
    } else if (phase.is === 'choosing' && 'open' in phase.instead) {
      this.#phase = { is: 'free' };
      this.#trigger.push(token);
    } else this.#phase = { is: 'ended' };
  }

  /**
   * Tells whether a draft may contain this token. Stricter than `accept`: outside of calls it returns false for every
   * token, because any of them may begin a call.
   */
  accepts(token: number): boolean {
    return this.#phase.is === 'calling' && this.#phase.call.accepts(token);
  }

  expected(): number | null {
    return this.#phase.is === 'calling' ? this.#phase.call.expected() : null;
  }

  /** Returns the argument texts of all calls, one after another. */
  text(): string {
    return this.#calls.map((call) => call.arguments).join('');
  }

  get length(): number {
    return new TextEncoder().encode(this.text()).length;
  }

  /**
   * Returns `text()`. A call that was cut is not completed: the caller might run a call that the model has not
   * finished.
   */
  closed(): string {
    return this.text();
  }

  fork(): ToolConstraint {
    const copy = new ToolConstraint(this.#options);
    copy.#trigger = this.#trigger.fork();
    copy.#calls = this.#calls.map((call) => call.fork());
    const phase = this.#phase;
    // The call that is being written is the last one in the list.
    if (phase.is === 'calling') copy.#phase = { is: 'calling', call: at(copy.#calls, copy.#calls.length - 1) };
    else copy.#phase = phase.is === 'choosing' ? { ...phase, call: phase.call.fork() } : phase;
    return copy;
  }

  #acceptFree(token: number): void {
    const { forced, afterReasoning } = this.#options.grammar;
    const begun = this.#trigger.push(token);
    if (!begun) {
      if (forced && this.#trigger.answering) this.#call(this.#writer(afterReasoning));
      return;
    }
    const call = this.#writer(begun.steps);
    if (begun.written) call.skip(begun.written.trigger, begun.written.after);
    this.#call(call);
  }

  #call(call: CallWriter): void {
    this.#calls.push(call);
    this.#phase = { is: 'calling', call };
  }

  #afterCall(call: CallWriter): void {
    if (!call.ended) return;
    const { next, ending } = this.#options.grammar;
    // The caller sends the calls back in one message, which may have no more.
    if (!next || this.#calls.length === MOST_CALLS) this.#phase = { is: 'ended' };
    else {
      const instead = { ending: ending ? this.#writer(ending) : null };
      this.#phase = { is: 'choosing', call: this.#writer(next), instead };
    }
  }

  #writer(steps: readonly CallStep[]): CallWriter {
    const { grammar, vocabulary } = this.#options;
    return new CallWriter(steps, { tools: grammar.tools, vocabulary });
  }
}
