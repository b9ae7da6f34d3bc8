import { at } from '../at.ts';
import { atOnce } from '../at-once.ts';
import type { DecideTask, Task } from '../backend.ts';
import type { AnswerShape, JsonSchema } from '../contract/answer-shape.ts';
import { Automaton } from '../grammar/automaton/automaton.ts';
import type { Constraint, Vocabulary } from '../grammar/constraint.ts';
import { GrammarConstraint } from '../grammar/grammar-constraint.ts';
import { compileSchema } from '../grammar/resolve/compile.ts';
import { QuotedTexts } from '../grammar/text/quoted-texts.ts';
import { type Masks, masksOf } from '../grammar/vocabulary/masks.ts';
import { isInstructed } from '../prompt/tasks.ts';
import { FREE_TEXT } from './extract-shape.ts';

/** Describes how to generate a task's answer. The engine uses the members in this order. */
export interface TaskGrammar {
  /** Tokens that every answer begins with, directly after the prompt of the task. May be empty. */
  head: readonly number[];
  /**
   * Present for a decide task with options. Of its paths, the one with the highest total log-probability is chosen
   * before any other text is generated.
   */
  choice?: OptionChoice;
  /**
   * Returns the constraint for the text after the head and, if there is a `choice`, after the chosen path. Its `text()`
   * includes both.
   *
   * @param path index of the chosen path
   * @throws RangeError if there is a `choice`, but no path with this index
   */
  constraint(path?: number): Constraint;
  /**
   * Present for a task with `present`: allows null, too, where the value begins, directly after the head.
   */
  measured?: Constraint;
  /**
   * JSON text of the whole answer to report if nothing was generated after the head, because the token budget ran out
   * or no option was chosen.
   */
  unsettled: string;
}

export interface OptionChoice {
  /**
   * Token paths of the options, after the answer's head. Each includes the token that ends the option, so none is a
   * prefix of another.
   */
  paths: readonly (readonly number[])[];
  /**
   * For each path, the index of its option. An option has two paths if a reason may follow: one with and one without
   * it.
   */
  options: readonly number[];
}

/**
 * Returns the grammar of a task's answer.
 *
 * @param quoted texts of the input, which a task with `verbatim` quotes
 * @param task a task whose schema `checkAnswerSchema` has accepted
 * @throws AssayError `unsupported_schema` for any other schema, `engine_failed` if the vocabulary has no tokens for a
 *   text that the answer must contain
 */
export function taskGrammar(task: Task, vocabulary: Vocabulary, quoted?: QuotedTexts): TaskGrammar {
  return atOnce(taskGrammarInParts(task, vocabulary, quoted));
}

/** Returns what `taskGrammar` does. Yields between options, so that other work may run. */
export function* taskGrammarInParts(
  task: Task,
  vocabulary: Vocabulary,
  quoted = new QuotedTexts([]),
): Generator<void, TaskGrammar> {
  if (task.type === 'extract') {
    const constraintOf = (shape: AnswerShape) =>
      new GrammarConstraint(shapeAutomaton(shape, task.verbatim ? quoted : null), masksOf(vocabulary));
    const measured = constraintOf(task.shape);
    const whole = generated(measured);
    if (!task.present) return whole;
    const present = measured.alongside(shapeAutomaton(task.present, task.verbatim ? quoted : null));
    // Where one token writes the end of the name and the quote of a text, as `":"` does, the shorter token `":` means
    // that no text follows. Without such a token, the first choice must be that between a value and null.
    if (present.withholdNext()) return { ...whole, constraint: () => present.fork(), measured };
    const head = [...whole.head, ...measured.release()];
    present.release();
    return { ...whole, head, constraint: () => present.fork(), measured };
  }
  if (!task.options) return generated(decideConstraint(task, vocabulary));
  const { head, paths } = yield* optionPaths(task.options, mayReason(task), masksOf(vocabulary));
  return {
    head,
    choice: { paths: paths.map(({ tokens }) => tokens), options: paths.map(({ option }) => option) },
    constraint(path) {
      const chosen = path === undefined ? undefined : paths[path];
      if (!chosen) throw new RangeError(`no path ${path}`);
      // The schema omits the other options, because all of them together may exceed the bounds of a schema.
      const constraint = decideConstraint({ ...task, options: [at(task.options!, chosen.option)] }, vocabulary);
      constraint.skip(chosen.text);
      return constraint;
    },
    unsettled: '{"value":""}',
  };
}

/**
 * Builds and caches the tables that grammars need for a vocabulary. This takes about a second, for which the first
 * answer would otherwise have to wait.
 */
export function prepareVocabulary(vocabulary: Vocabulary): void {
  masksOf(vocabulary).warm();
}

/** Returns a new constraint for an answer of this shape, for extract tasks and for `response_format` of a chat. */
export function shapeConstraint(shape: AnswerShape, vocabulary: Vocabulary): GrammarConstraint {
  return new GrammarConstraint(shapeAutomaton(shape), masksOf(vocabulary));
}

/** Returns the grammar of an answer that is generated token by token, without a choice between options. */
function generated(constraint: Constraint): TaskGrammar {
  const unsettled = constraint.closed();
  const head = constraint.takeForced();
  return { head, constraint: () => constraint.fork(), unsettled };
}

const FREE_MEMBERS: JsonSchema = { type: ['string', 'number', 'boolean', 'null'] };

function shapeAutomaton(shape: AnswerShape, quoted: QuotedTexts | null = null): Automaton {
  switch (shape.kind) {
    case 'schema':
      return automatonOf(shape.schema, shape.keys, quoted);
    case 'keys':
      // `keys` sets the order of the members: an object would move names such as `10` to the front.
      return automatonOf(
        objectSchema(shape.keys.map((key) => [key, { type: ['string', 'null'] }])),
        shape.keys,
        quoted,
      );
    case 'open':
      return automatonOf({ type: 'object', additionalProperties: FREE_MEMBERS }, undefined, quoted);
    default:
      return automatonOf({ type: 'object' }, undefined, quoted);
  }
}

function decideConstraint(task: DecideTask, vocabulary: Vocabulary): GrammarConstraint {
  const value: JsonSchema = task.options
    ? { enum: task.options }
    : { type: 'string', minLength: 1, maxLength: FREE_TEXT.value };
  const reason: JsonSchema = { type: 'string', minLength: 1, maxLength: FREE_TEXT.reason };
  const schema = objectSchema([['value', value], ...(mayReason(task) ? [['reason', reason] as const] : [])], ['value']);
  return new GrammarConstraint(automatonOf(schema), masksOf(vocabulary), UNSETTLED_VALUE);
}

const UNSETTLED_VALUE = new Map([['value', '""']]);

/** Tells whether the answer may contain a reason: only an instruction can ask for one. */
function mayReason(task: DecideTask): boolean {
  return isInstructed(task);
}

function objectSchema(
  members: readonly (readonly [string, JsonSchema])[],
  required: readonly string[] = members.map(([name]) => name),
): JsonSchema {
  return { type: 'object', properties: Object.fromEntries(members), required, additionalProperties: false };
}

/**
 * Recently used automata with the states built so far, which the next request with the same schema reuses. The most
 * recently used one is last.
 */
const recent = new Map<string, Automaton>();
const KEPT = 32;

function automatonOf(schema: JsonSchema, keys?: readonly string[], quoted: QuotedTexts | null = null): Automaton {
  const compile = () => new Automaton(compileSchema(schema, { path: 'schema', ...(keys ? { keys } : {}) }), quoted);
  // An automaton that quotes belongs to one request.
  if (quoted) return compile();
  return recentAutomaton(JSON.stringify([schema, keys]), compile);
}

/**
 * Returns the cached automaton of `key`. If there is none, creates it with `make` and caches it. At most 32 automata
 * are cached; the least recently used one is dropped.
 */
export function recentAutomaton(key: string, make: () => Automaton): Automaton {
  const automaton = recent.get(key) ?? make();
  recent.delete(key);
  recent.set(key, automaton);
  const [oldest] = recent.keys();
  if (oldest !== undefined && recent.size > KEPT) recent.delete(oldest);
  return automaton;
}

/** Describes a way to write one option. */
interface OptionPath {
  /** Index of the option. */
  option: number;
  /** The tokens after `head`, the tokens that all answers begin with. */
  tokens: readonly number[];
  /** The text of the answer from its beginning to the end of this path. */
  text: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Returns the token paths by whose total log-probability options are compared. The whole answer of each option is
 * tokenized as the model would write it. `head` has the tokens that all answers begin with, `paths` the tokens after
 * them. A path ends with the token that contains the character after the option's closing quote, so no path is a prefix
 * of another.
 *
 * @param reason true if a reason may follow. Every option then has two paths, one that ends with `}` and one with `,`.
 *   A path that ended with the bare quote would score a token that models hardly ever write there.
 */
function* optionPaths(
  options: readonly string[],
  reason: boolean,
  masks: Masks,
): Generator<void, { head: readonly number[]; paths: readonly OptionPath[] }> {
  const endings = reason ? ['}', ',"reason":"'] : ['}'];
  const whole: OptionPath[] = [];
  for (const [option, value] of options.entries()) {
    for (const ending of endings) {
      const settled = `{"value":${JSON.stringify(value)}${ending[0]}`;
      const text = encoder.encode(settled + ending.slice(1));
      const end = encoder.encode(settled).length;
      const tokens: number[] = [];
      let length = 0;
      for (const token of masks.tokenise(text)) {
        if (length >= end) break;
        tokens.push(token);
        length += masks.vocabulary.bytes(token)!.length;
      }
      whole.push({ option, tokens, text: decoder.decode(text.subarray(0, length)) });
    }
    yield;
  }
  const first = at(whole, 0).tokens;
  let shared = 0;
  while (whole.every(({ tokens }) => shared < tokens.length - 1 && tokens[shared] === first[shared])) shared++;
  return { head: first.slice(0, shared), paths: whole.map((path) => ({ ...path, tokens: path.tokens.slice(shared) })) };
}
