import type { AnswerShape, JsonSchema } from '../answer-shape.ts';
import type { DecideTask, Task } from '../backend.ts';
import { Automaton } from '../grammar/automaton/automaton.ts';
import type { Constraint, Vocabulary } from '../grammar/constraint.ts';
import { GrammarConstraint } from '../grammar/grammar-constraint.ts';
import { FREE_TEXT } from '../grammar/limits.ts';
import { compileSchema } from '../grammar/resolve/compile.ts';
import { masksOf } from '../grammar/vocabulary/masks.ts';
import { isInstructed } from '../prompt/tasks.ts';
import { optionPaths } from './option-paths.ts';

/** How a task's answer is written: what the engine needs for a branch, in order. */
export interface TaskGrammar {
  /** Tokens that every answer begins with; they go behind the task's own prompt. May be empty. */
  head: readonly number[];
  /** A decide with options: the choice that is made by total log-probability, before anything else is said. */
  choice?: OptionChoice;
  /**
   * What may be said after the head, and after the path that was chosen. Begins behind both: its `text()` holds them already.
   *
   * @param path index of the chosen path; only with `choice`
   */
  constraint(path?: number): Constraint;
  /** The whole answer where nothing was said after the head: the budget was spent before, or the choice was not settled. */
  unsettled: string;
}

export interface OptionChoice {
  /** Token paths behind the head. Each goes to the end of its option, so none is the beginning of another. */
  paths: readonly (readonly number[])[];
  /** For each path the index of its option. An option has two paths where a reason may follow: with and without one. */
  options: readonly number[];
}

/**
 * The grammar of a task's answer.
 *
 * @param task a checked task (`checkAnswerSchema`); throws `unsupported_schema` for one that is not
 */
export function taskGrammar(task: Task, vocabulary: Vocabulary): TaskGrammar {
  if (task.type === 'extract') return written(shapeConstraint(task.shape, vocabulary));
  if (!task.options) return written(decideConstraint(task, vocabulary));
  const { head, paths } = optionPaths(task.options, mayReason(task), masksOf(vocabulary));
  return {
    head,
    choice: { paths: paths.map(({ tokens }) => tokens), options: paths.map(({ option }) => option) },
    constraint(path) {
      const chosen = path === undefined ? undefined : paths[path];
      if (!chosen) throw new RangeError(`no path ${path}`);
      // The other options are out: all of them together may be more than a schema may hold.
      const constraint = decideConstraint({ ...task, options: [task.options![chosen.option]!] }, vocabulary);
      constraint.skip(chosen.text);
      return constraint;
    },
    unsettled: '{"value":""}',
  };
}

/** Makes a vocabulary ready for grammars, about a second of work, so that the first answer does not wait for it. */
export function prepareVocabulary(vocabulary: Vocabulary): void {
  masksOf(vocabulary).warm();
}

/** The constraint of an answer's shape: extract tasks, and `response_format` of chat. */
export function shapeConstraint(shape: AnswerShape, vocabulary: Vocabulary): Constraint {
  return new GrammarConstraint(shapeAutomaton(shape), masksOf(vocabulary));
}

function written(constraint: Constraint): TaskGrammar {
  const unsettled = constraint.closed();
  const head = constraint.takeForced();
  return { head, constraint: () => constraint.fork(), unsettled };
}

const FREE_MEMBERS: JsonSchema = { type: ['string', 'number', 'boolean', 'null'] };

function shapeAutomaton(shape: AnswerShape): Automaton {
  switch (shape.kind) {
    case 'schema':
      return automatonOf(shape.schema, shape.keys);
    case 'keys':
      // Named again for their order: an object moves names such as `10` to the front.
      return automatonOf(objectSchema(shape.keys.map((key) => [key, { type: ['string', 'null'] }])), shape.keys);
    case 'open':
      return automatonOf({ type: 'object', additionalProperties: FREE_MEMBERS });
    default:
      return automatonOf({ type: 'object' });
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

/** Only an instruction can ask for a reason. */
function mayReason(task: DecideTask): boolean {
  return isInstructed(task);
}

function objectSchema(
  members: readonly (readonly [string, JsonSchema])[],
  required: readonly string[] = members.map(([name]) => name),
): JsonSchema {
  return { type: 'object', properties: Object.fromEntries(members), required, additionalProperties: false };
}

/** Automata of recent answers, with the states that were walked: the next request with the same schema finds them warm. */
const recent = new Map<string, Automaton>();
const KEPT = 32;

function automatonOf(schema: JsonSchema, keys?: readonly string[]): Automaton {
  const key = JSON.stringify([schema, keys]);
  const automaton =
    recent.get(key) ?? new Automaton(compileSchema(schema, { path: 'schema', ...(keys ? { keys } : {}) }));
  recent.delete(key);
  recent.set(key, automaton);
  if (recent.size > KEPT) recent.delete(recent.keys().next().value!);
  return automaton;
}
