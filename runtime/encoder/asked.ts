import { at } from '../../lib/at.ts';
import type { DecideTask, TaskBatch } from '../../lib/backend.ts';
import type { ChatMessage } from '../../lib/contract/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { isObject, type PyValue, parsePython, pyObject, textOrJson } from '../contracts/python-json.ts';
import type { Option, Question } from './adapter.ts';

/** Holds a question with its options in the order in which they were sent. */
export interface Asked {
  question: Question;
  /** Index in the task's options of each option of the question. */
  order: readonly number[];
}

/**
 * Returns a task as a question in the terms of the authors' code. Throws `unsupported_parameter` for a task without
 * options.
 */
export function askedOf(task: DecideTask): Asked {
  const { options, kind = 'choice', sent } = task;
  if (!options) {
    const message =
      'This model chooses among options and does not write. Send options, or load a model that generates text.';
    throw new AssayError('unsupported_parameter', message);
  }
  const instructions = instructionsOf(task);
  const criteria = sent?.criteria === undefined ? undefined : parsePython(sent.criteria);
  if (criteria === undefined || criteria === null) {
    const { descriptions = [] } = task;
    const given = options.map((label, i): Option => ({ label, description: descriptions[i] || null }));
    return { question: { kind, instructions, options: given }, order: options.map((_, i) => i) };
  }
  const shown = kind === 'predicate' ? predicate(options, criteria) : listed(kind, criteria);
  // A JavaScript object, from which the task is made, moves members such as `10` to the front.
  const order = kind === 'choice' ? shown.map(({ label }) => options.indexOf(label)) : shown.map((_, i) => i);
  return { question: { kind, instructions, options: shown }, order };
}

function instructionsOf({ question, instruction, sent }: DecideTask): PyValue {
  if (instruction !== undefined) return `${instruction}\n${question}`;
  const value = sent?.instructions === undefined ? null : parsePython(sent.instructions);
  return value === null || value === '' ? question : value;
}

function predicate(options: readonly string[], criteria: PyValue): Option[] {
  return ['true', 'false'].map((name, i) => ({
    label: at(options, i),
    description: isObject(criteria) ? described(criteria.get(name)) : null,
  }));
}

function listed(kind: Question['kind'], criteria: PyValue): Option[] {
  if (isObject(criteria)) {
    return [...criteria].map(([label, value]) => ({ label, description: described(value) }));
  }
  const items: readonly PyValue[] = Array.isArray(criteria) ? criteria : [];
  return items.map((item, i) => {
    // A list of labels may describe them: { "key": …, "description": … }. A level without words is its number.
    const key = kind === 'choice' && isObject(item) ? item.get('key') : undefined;
    if (key !== undefined && isObject(item))
      return { label: textOrJson(key), description: described(item.get('description')) };
    return { label: item === null ? String(i) : textOrJson(item), description: null };
  });
}

function described(value: PyValue | undefined): PyValue {
  return value === undefined || value === '' ? null : value;
}

/** Returns the same question with its options in another order. */
export function inOrder({ question, order }: Asked, places: readonly number[]): Asked {
  const options = places.map((place) => at(question.options, place));
  return { question: { ...question, options }, order: places.map((place) => at(order, place)) };
}

/** Holds the shared input of a batch. */
export interface AskedState {
  value: PyValue;
  /** The text as the client sent it; null for other inputs, in which spans have no place. */
  text: string | null;
}

/**
 * Returns the input of a batch. Messages become a list of their roles and contents, or lines for a model whose author
 * knows no such lists; a single message of the user is a text. Throws `unsupported_modality` for media.
 */
export function stateOf({ input, media }: Pick<TaskBatch, 'input' | 'media'>, lists: boolean): AskedState {
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
    const text = textOfMessage(only);
    return { value: text, text: only.parts.length === 1 ? text : null };
  }
  if (!lists) return { value: messages.map((one) => `${one.role}: ${textOfMessage(one)}`).join('\n'), text: null };
  return { value: messages.map((one) => pyObject(['role', one.role], ['content', textOfMessage(one)])), text: null };
}

function textOfMessage({ parts }: ChatMessage): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}
