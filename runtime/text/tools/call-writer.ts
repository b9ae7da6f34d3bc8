import { append } from '../../../lib/append.ts';
import { at } from '../../../lib/at.ts';
import type { Tool } from '../../../lib/backend.ts';
import { GrammarConstraint } from '../../../lib/grammar/grammar-constraint.ts';
import { masksOf } from '../../../lib/grammar/vocabulary/masks.ts';
import { setBit } from '../../../lib/grammar/vocabulary/token-mask.ts';
import { type CallText, namedTool, textBeforeArguments, toolAutomaton } from '../../../lib/tasks/tool-automaton.ts';
import type { TextVocabulary } from '../tokenizer/vocabulary.ts';
import type { CallStep } from './call-grammar.ts';

interface Tools {
  tools: readonly Tool[];
  vocabulary: TextVocabulary;
}

/** Constrains the tokens of one tool call to its steps, in order: control tokens exactly, and text by a grammar. */
export class CallWriter {
  readonly #tools: Tools;
  readonly #steps: readonly CallStep[];
  #step = 0;
  /** Grammar of the current step's text; null before it has begun. */
  #text: GrammarConstraint | null = null;
  /** Control tokens of the current step that must follow. */
  #forced: readonly number[] = [];
  #tool: Tool | undefined;
  #arguments = '';

  constructor(steps: readonly CallStep[], tools: Tools) {
    this.#steps = steps;
    this.#tools = tools;
  }

  /** Tool that is called; undefined until its name is complete. */
  get tool(): Tool | undefined {
    return this.#tool;
  }

  /**
   * Text written since the arguments began. Once they are complete, it also contains the rest of the same step, such as
   * a closing brace of the call.
   */
  get arguments(): string {
    return this.#arguments;
  }

  /** True if the text of the arguments is complete. */
  get argumentsEnded(): boolean {
    return this.#steps.slice(0, this.#step).some((step) => !('control' in step) && step.arguments);
  }

  get ended(): boolean {
    return this.#step === this.#steps.length && this.#forced.length === 0;
  }

  takeForced(): number[] {
    const tokens = [...this.#forced];
    this.#forced = [];
    for (let step = this.#steps[this.#step]; step; step = this.#steps[this.#step]) {
      if ('control' in step) {
        append(tokens, step.control);
        this.#step++;
        continue;
      }
      const text = this.#textOf(step);
      append(tokens, text.takeForced());
      this.#read(step, text);
      if (!text.complete) break;
      this.#endText(step, text);
    }
    return tokens;
  }

  mask(into: Uint32Array): void {
    const step = this.#steps[this.#step];
    into.fill(0);
    if (!step) return;
    if ('control' in step) {
      setBit(into, at(step.control, 0));
      return;
    }
    const text = this.#textOf(step);
    text.mask(into);
    const after = this.#controlAfter(text);
    if (after !== undefined) setBit(into, after);
  }

  accepts(token: number): boolean {
    const step = this.#steps[this.#step];
    if (!step) return false;
    if ('control' in step) return token === step.control[0];
    const text = this.#textOf(step);
    return token === this.#controlAfter(text) || text.accepts(token);
  }

  accept(token: number): void {
    const step = this.#steps[this.#step];
    if (step && !('control' in step)) {
      const text = this.#textOf(step);
      if (token !== this.#controlAfter(text)) {
        text.accept(token);
        this.#read(step, text);
        if (text.complete) this.#endText(step, text);
        return;
      }
      this.#endText(step, text);
    }
    const control = this.#steps[this.#step];
    if (!control || !('control' in control) || control.control[0] !== token) {
      throw new RangeError(`token ${token} is not allowed here`);
    }
    this.#forced = control.control.slice(1);
    this.#step++;
  }

  expected(): number | null {
    return this.#text?.expected() ?? null;
  }

  /**
   * Accepts text that the model has already written at the beginning of a call: the trigger, and the text after it in
   * the same token. Ignores the latter if no call can continue with it.
   */
  skip(trigger: string, after: string): void {
    const step = this.#steps[this.#step];
    if (!step || 'control' in step) return;
    this.#textOf(step).skip(trigger);
    const trial = this.#textOf(step).fork();
    try {
      trial.skip(after);
      this.#text = trial;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }

  fork(): CallWriter {
    const copy = new CallWriter(this.#steps, this.#tools);
    copy.#step = this.#step;
    copy.#text = this.#text?.fork() ?? null;
    copy.#forced = this.#forced;
    copy.#tool = this.#tool;
    copy.#arguments = this.#arguments;
    return copy;
  }

  #textOf(step: CallText): GrammarConstraint {
    const { tools, vocabulary } = this.#tools;
    const candidates = !step.name && this.#tool ? [this.#tool] : tools;
    this.#text ??= new GrammarConstraint(toolAutomaton(step, candidates), masksOf(vocabulary));
    return this.#text;
  }

  #endText(step: CallText, text: GrammarConstraint): void {
    this.#read(step, text, true);
    this.#text = null;
    this.#step++;
  }

  /** Reads the tool's name and the arguments from the text that a step has written so far. */
  #read(step: CallText, constraint: GrammarConstraint, ended = false): void {
    if (!step.name && !step.arguments) return;
    const text = constraint.text();
    if (step.name) this.#tool ??= namedTool(step, text, this.#tools.tools, ended);
    if (step.arguments && this.#tool) this.#arguments = text.slice(textBeforeArguments(step, this.#tool).length);
  }

  /**
   * Returns the control token that may follow a text that is complete but could also continue, such as a tool name that
   * is the beginning of another; undefined otherwise.
   */
  #controlAfter(text: GrammarConstraint): number | undefined {
    const next = this.#steps[this.#step + 1];
    return next && 'control' in next && text.mayEnd ? next.control[0] : undefined;
  }
}
