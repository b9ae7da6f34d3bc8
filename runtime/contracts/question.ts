import { at } from '../../lib/at.ts';
import type { DecideTask, QuestionKind, Task, TaskAnswer, TaskBatch } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import { longerThanContext, READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import { messageText } from '../../lib/prompt/tasks.ts';
import { DEFAULT_INSTRUCTIONS } from '../../lib/questions/settings.ts';
import { averaged, indexOfHighest } from '../../lib/tasks/logprobs.ts';
import { orderings } from '../../lib/tasks/orders.ts';
import { isPyObject, type PyValue, parsePython, pyObject, textOrJson } from './python-json.ts';

/*
 * The state and the questions of a request, which are the same for the prompts of all decision models, and its answers
 * from the options' probabilities.
 */

/** Describes a question as it was sent. Options are in the order of the answer: true before false, low levels first. */
export interface Question {
  /** Name of its task, which no other question of the request has. */
  task: string;
  /** Name that the caller gave the question. */
  id: string;
  kind: QuestionKind;
  /** The question; null if none was sent. */
  instructions: PyValue;
  options: readonly Option[];
}

export interface Option {
  /** Label of a choice, `false` or `true`, or the number of a level. */
  name: string;
  /** Description of a label, or the level itself; null if none was sent. */
  description: PyValue;
  /** True if the request says nothing at all about true or false, not even null. */
  absent?: boolean;
}

/** Holds the state of a request. */
export interface QuestionState {
  /** Its JSON, its text, or its conversation as a list of messages. */
  value: PyValue;
  /** The text as the client sent it; null for other inputs, in which spans have no place. */
  text: string | null;
}

/**
 * Returns the state of a batch. Throws `unsupported_modality` for media.
 *
 * @param lists true for a conversation as a list of roles and contents, false for lines
 */
export function stateOf({ input, media }: Pick<TaskBatch, 'input' | 'media'>, lists: boolean): QuestionState {
  const messages = 'messages' in input ? input.messages : [];
  const found = [...media, ...messages.flatMap(({ parts }) => parts)].find((part) => part.type !== 'text');
  if (found) {
    const message = 'This model reads only text. Remove the image or recording, or load a model that reads it.';
    throw new AssayError('unsupported_modality', message, { param: found.param });
  }
  if ('context' in input) {
    if (input.state === undefined) return { value: input.context, text: input.context };
    return { value: parsePython(input.state), text: null };
  }
  const [only] = messages;
  if (only?.role === 'user' && messages.length === 1) {
    const text = messageText(only);
    return { value: text, text: only.parts.length === 1 && !only.name ? text : null };
  }
  const said = messages.map((one) => ({ role: one.role, content: messageText(one) }));
  if (!lists) return { value: said.map(({ role, content }) => `${role}: ${content}`).join('\n'), text: null };
  return { value: said.map(({ role, content }) => pyObject(['role', role], ['content', content])), text: null };
}

/** Characters of a text for each token, beyond which it is refused before it is encoded. */
export const MOST_CHARACTERS = 64;

/**
 * Throws `input_too_long` for a state that certainly has more than `limit` tokens, before it is parsed: it has too many
 * characters, or too many values, each of which takes at least a token.
 */
export function checkState({ input }: Pick<TaskBatch, 'input'>, limit: number): void {
  if (!('context' in input)) return;
  const { length } = input.context;
  if (length > MOST_CHARACTERS * limit) throw longerThanContext(limit, `${length} characters`, READ_IN_WINDOWS);
  const values = input.state === undefined ? 1 : valuesIn(input.state);
  if (values > limit) throw longerThanContext(limit, `at least ${values} values`, READ_IN_WINDOWS);
}

/** Counts the values of a JSON text, but those that contain others. */
function valuesIn(json: string): number {
  let values = 1;
  let inText = false;
  for (let at = 0; at < json.length; at++) {
    const character = json.charCodeAt(at);
    if (character === QUOTE) inText = !inText;
    else if (character === BACKSLASH) at++;
    else if (character === COMMA && !inText) values++;
  }
  return values;
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];

/** Sets the maximum number of options of a choice, and of levels of a score. */
export interface QuestionLimits {
  options: number;
  levels: number;
}

/**
 * Returns the question of a task. Throws `unsupported_parameter` for a task that is no question with options, and
 * `invalid_value` for too many of them.
 *
 * @param model name of the model's family, for messages
 */
export function questionOf(task: Task, model: string, limits: QuestionLimits): Question {
  const advice = 'Load a chat model for this, or send options.';
  if (task.type === 'extract') {
    throw new AssayError(
      'unsupported_parameter',
      `${model} models extract nothing: they choose among options. ${advice}`,
    );
  }
  const { kind = 'choice', name, options, instruction, question, sent } = task;
  if (!options) {
    throw new AssayError(
      'unsupported_parameter',
      `${model} models write nothing: they choose among options. ${advice}`,
    );
  }
  checkCount(options.length, kind, model, limits);
  const parsed = (text: string | undefined): PyValue => (text === undefined ? null : parsePython(text));
  const criteria = parsed(sent?.criteria);
  const whole = instruction?.trim() ? `${instruction}\n${question}` : question;
  const asked = sent?.instructions === undefined && sent?.criteria === undefined ? whole : parsed(sent.instructions);
  return {
    task: name,
    // The labels of a question of many have its name in common, and are asked apart.
    id: sent?.id ?? (task.first === undefined ? task.id : undefined) ?? name,
    kind,
    instructions: asked,
    options: optionsOf({ ...task, kind, options }, criteria),
  };
}

function checkCount(count: number, kind: QuestionKind, model: string, { options, levels }: QuestionLimits): void {
  const most = kind === 'score' ? levels : options;
  if (count <= most) return;
  const what = kind === 'score' ? `a score takes 1 to ${most} levels` : `at most ${most} options per choice`;
  throw new AssayError('invalid_value', `For ${model} models, ${what}, and the question has ${count}. Send fewer.`);
}

function optionsOf(
  { kind, options, descriptions = [] }: DecideTask & { kind: QuestionKind; options: readonly string[] },
  criteria: PyValue,
): Option[] {
  if (kind === 'predicate') {
    return ['true', 'false'].map((name, i): Option => {
      const description = isPyObject(criteria) ? criteria.get(name) : (descriptions[i] ?? undefined);
      return { name, description: description ?? null, ...(description === undefined ? { absent: true } : {}) };
    });
  }
  if (kind === 'score') {
    const levels = Array.isArray(criteria) ? (criteria as readonly PyValue[]) : options;
    return levels.map((level, i) => ({ name: String(i), description: withDescription(level, descriptions[i]) }));
  }
  if (isPyObject(criteria)) return [...criteria].map(([name, description]) => ({ name, description }));
  // A list of labels may describe them: { "key": …, "description": … }.
  const items = Array.isArray(criteria) ? (criteria as readonly PyValue[]) : [];
  return options.map((name, i) => {
    const item = items[i] ?? null;
    return { name, description: isPyObject(item) ? (item.get('description') ?? null) : (descriptions[i] ?? null) };
  });
}

/** Joins a level with its description, which OpenAI's format has beside the label. */
function withDescription(level: PyValue, description: string | null | undefined): PyValue {
  return description && typeof level === 'string' ? `${level}: ${description}` : level;
}

/** Holds a question in one order of its options, with the index in the task's options of each of them. */
export interface Asked {
  question: Question;
  order: readonly number[];
}

/** Returns a choice in as many orders of its options as the request asks for; other questions have one order. */
export function inOrders(
  { options: labels = [] }: DecideTask,
  question: Question,
  { probabilities }: Pick<TaskBatch, 'probabilities'>,
): Asked[] {
  const { kind, options } = question;
  const indices = options.map(({ name }, i) => {
    if (kind === 'predicate') return name === 'true' ? 0 : 1;
    return kind === 'score' ? i : labels.indexOf(name);
  });
  const orders = kind === 'choice' ? (probabilities?.orders ?? 1) : 1;
  return orderings(options.length, orders).map((places) => ({
    question: { ...question, options: places.map((place) => at(options, place)) },
    order: places.map((place) => at(indices, place)),
  }));
}

/**
 * Returns the answer to a question from what was read in each order of its options, and other members of the answer.
 */
export function answerOf(
  { name, options = [] }: DecideTask,
  read: readonly { order: readonly number[]; logprobs: readonly number[] }[],
  { probabilities }: Pick<TaskBatch, 'probabilities'>,
  { abstained, ...rest }: Pick<TaskAnswer, 'abstained' | 'confidence' | 'labelMass'>,
): TaskAnswer {
  const ordered = read.map(({ order, logprobs }) => {
    const byOption = new Array<number>(options.length).fill(0);
    for (const [place, option] of order.entries()) byOption[option] = at(logprobs, place);
    return byOption;
  });
  const optionLogprobs = averaged(ordered);
  const known = abstained ? { abstained } : {};
  const json = JSON.stringify({ value: at(options, indexOfHighest(optionLogprobs)), ...known });
  return { name, json, ...known, ...(probabilities ? { optionLogprobs, ...rest } : {}) };
}

/**
 * Returns a question for models that read words alone: it always asks something, a level is its words, true and false
 * are "yes" and "no", and an empty description is none.
 */
export function inWords({ options, kind, instructions, ...question }: Question): Question {
  const none = instructions === null || instructions === '';
  const asked = none ? DEFAULT_INSTRUCTIONS[kind] : instructions;
  return { ...question, kind, instructions: asked, options: options.map((option) => wordsOf(option, kind)) };
}

function wordsOf({ name, description }: Option, kind: QuestionKind): Option {
  const described = description === '' ? null : description;
  if (kind === 'predicate') return { name: name === 'true' ? 'yes' : 'no', description: described };
  if (kind === 'score') return { name: described === null ? name : textOrJson(described), description: null };
  return { name, description: described };
}
