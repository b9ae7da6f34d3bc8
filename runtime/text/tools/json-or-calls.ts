import { at } from '../../../lib/at.ts';
import type { ToolUse } from '../../../lib/backend.ts';
import type { AnswerShape } from '../../../lib/contract/answer-shape.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { Constraint } from '../../../lib/grammar/constraint.ts';
import type { GrammarConstraint } from '../../../lib/grammar/grammar-constraint.ts';
import { addMask } from '../../../lib/grammar/vocabulary/token-mask.ts';
import { shapeConstraint } from '../../../lib/tasks/task-grammar.ts';
import type { OutputDelta, SampledToken } from '../output/chat-output.ts';
import { JsonOutput } from '../output/json-output.ts';
import type { TextModel } from '../text-model.ts';
import type { ToolConstraint } from './tool-constraint.ts';
import { toolForm } from './tool-form.ts';
import type { ToolOutput } from './tool-output.ts';

/**
 * Returns the grammar and the reader of an answer that is either JSON of this shape or calls to tools. The prompt must
 * have ended the model's reasoning.
 *
 * @throws AssayError `unsupported_parameter` if the first token does not tell a call from JSON; `unsupported_schema`
 *   for parameters that the model cannot write
 */
export function jsonOrCalls(
  text: TextModel,
  { use, shape, stops }: { use: ToolUse; shape: AnswerShape; stops: readonly string[] },
): { constraint: JsonOrCalls; output: JsonOrCallsOutput } {
  const { vocabulary, template } = text;
  const json = shapeConstraint(shape, vocabulary);
  const forced: ToolUse = { ...use, choice: 'required' };
  const calls = toolForm(text, { use: forced, stops, thinking: false, mayReason: false });
  const constraint = new JsonOrCalls(json, calls.constraint);
  // A model that writes headers has written that of its answer once its reasoning is ended.
  if (template.reasoning.channels || constraint.isAmbiguous(vocabulary.size)) throw ambiguous();
  return {
    constraint,
    output: new JsonOrCallsOutput(constraint, new JsonOutput(vocabulary, json, stops), calls.output),
  };
}

function ambiguous(): AssayError {
  const message =
    'The loaded model cannot choose between tool calls and JSON, because both begin alike. Set tool_choice to none or required, or send the schema as parameters of a tool.';
  return new AssayError('unsupported_parameter', message, { param: 'tools' });
}

/** Constrains an answer to JSON or to calls. The first token decides which. */
export class JsonOrCalls implements Constraint {
  readonly #json: GrammarConstraint;
  readonly #calls: ToolConstraint;
  #chosen: GrammarConstraint | ToolConstraint | null;

  constructor(json: GrammarConstraint, calls: ToolConstraint, chosen: 'json' | 'calls' | null = null) {
    this.#json = json;
    this.#calls = calls;
    this.#chosen = chosen && (chosen === 'json' ? json : calls);
  }

  /** Tells whether a token may begin both JSON and a call. */
  isAmbiguous(vocabularySize: number): boolean {
    const json = new Uint32Array(Math.ceil(vocabularySize / 32));
    const calls = new Uint32Array(json.length);
    this.#json.mask(json);
    this.#calls.mask(calls);
    return json.some((word, i) => (word & at(calls, i)) !== 0);
  }

  /** Tells whether the answer is calls, once `token` is accepted. */
  isCalls(token: number): boolean {
    return this.#chosen ? this.#chosen === this.#calls : this.#calls.accepts(token);
  }

  get complete(): boolean {
    return this.#chosen?.complete ?? false;
  }

  takeForced(): number[] {
    return this.#chosen?.takeForced() ?? [];
  }

  mask(into: Uint32Array): void {
    (this.#chosen ?? this.#json).mask(into);
    if (this.#chosen) return;
    const calls = new Uint32Array(into.length);
    this.#calls.mask(calls);
    addMask(into, calls);
  }

  accept(token: number): void {
    this.#chosen ??= this.isCalls(token) ? this.#calls : this.#json;
    this.#chosen.accept(token);
  }

  /** Tells whether a drafted token is allowed. The first one is not drafted, because it decides. */
  accepts(token: number): boolean {
    return this.#chosen?.accepts(token) ?? false;
  }

  expected(): number | null {
    return this.#chosen?.expected() ?? null;
  }

  text(): string {
    return this.#chosen?.text() ?? '';
  }

  get length(): number {
    return this.#chosen?.length ?? 0;
  }

  closed(): string {
    return (this.#chosen ?? this.#json).closed();
  }

  fork(): JsonOrCalls {
    const chosen = this.#chosen && (this.#chosen === this.#json ? 'json' : 'calls');
    return new JsonOrCalls(this.#json.fork(), this.#calls.fork(), chosen);
  }
}

/** Converts sampled tokens to JSON text or to calls, as the first token decides. */
export class JsonOrCallsOutput {
  readonly #constraint: JsonOrCalls;
  readonly #json: JsonOutput;
  readonly #calls: ToolOutput;
  #chosen: JsonOutput | ToolOutput | undefined;

  constructor(constraint: JsonOrCalls, json: JsonOutput, calls: ToolOutput) {
    this.#constraint = constraint;
    this.#json = json;
    this.#calls = calls;
  }

  get stopped(): boolean {
    return this.#chosen?.stopped ?? false;
  }

  /** Returns what is final before this token. The engine passes the token to the grammar only after this call. */
  push(sampled: SampledToken): OutputDelta {
    this.#chosen ??= this.#constraint.isCalls(sampled.token) ? this.#calls : this.#json;
    return this.#chosen.push(sampled);
  }

  /** Adds tokens that the grammar forces, as `JsonOutput.force`; those of calls have no log-probabilities. */
  force(tokens: readonly number[], top: boolean): void {
    if (this.#chosen === this.#json) this.#json.force(tokens, top);
  }

  /** Returns the rest of the answer, as `JsonOutput.end` and `ToolOutput.end`. */
  end(cut: boolean): OutputDelta {
    return (this.#chosen ?? this.#json).end(cut);
  }
}
