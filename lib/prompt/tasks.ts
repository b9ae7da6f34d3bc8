import type { DecideTask, Task, TaskBatch } from '../backend.ts';
import { textMessage } from '../chat/messages.ts';
import type { Json, JsonSchema } from '../contract/answer-shape.ts';
import type { ChatMessage, Part } from '../contract/conversation.ts';
import { isObject } from '../json/property.ts';
import type { Language } from '../schema/language.ts';
import { inlineDefinitions } from './inline-definitions.ts';

/** System message at the beginning of every batch. The starter model was trained with it. */
const TASK_SYSTEM =
  'Do the task at the end of the conversation with one JSON object and nothing else. ' +
  'A question: {"value": the answer}, one of the options where there are options; add "reason" only where it is asked for. ' +
  'An extraction: the fields asked for, null for what the text does not say.';

/** Text at the end of the shared prefix, inside the last user message, before the text of a task. */
export const TASK_SEPARATOR = '\n\n';

/**
 * Holds the prompt of a batch. The model's chat template renders `messages`, then one user message, which consists of
 * `media` and the text `openMessage + TASK_SEPARATOR + task`. The shared prefix ends before `task`, where the branches
 * begin.
 */
export interface TaskPrompt {
  messages: readonly ChatMessage[];
  /** Media of the request, and the last user message up to its last image or audio part. May be empty. */
  media: readonly Part[];
  /**
   * Text of the last user message after `media`: the context, or the end of the last message of the request. May be
   * empty.
   */
  openMessage: string;
  /** The text of each task (`taskText`), in the batch's order. */
  tasks: readonly string[];
}

/** Returns the prompt of a batch. System messages of the request are joined to one, after `TASK_SYSTEM`. */
export function taskPrompt(batch: TaskBatch): TaskPrompt {
  const tasks = batch.tasks.map((task) => taskText(task, task.language ?? batch.language));
  if ('context' in batch.input) {
    return { messages: [system([])], media: batch.media, openMessage: batch.input.context, tasks };
  }
  const instructions = batch.input.messages.filter((turn) => turn.role === 'system');
  const talk = batch.input.messages.filter((turn) => turn.role !== 'system');
  const last = talk.at(-1);
  const open = last?.role === 'user' ? last : undefined;
  return {
    messages: [system(instructions), ...(open ? talk.slice(0, -1) : talk)],
    ...openParts(batch.media, open),
    tasks,
  };
}

/** Splits the last user message after its last image or audio part, and puts the media of the request before it. */
function openParts(media: readonly Part[], open: ChatMessage | undefined): Pick<TaskPrompt, 'media' | 'openMessage'> {
  if (!open) return { media, openMessage: '' };
  const parts = namedParts(open);
  const texts = parts.slice(parts.findLastIndex((part) => part.type !== 'text') + 1);
  const before = parts.slice(0, parts.length - texts.length);
  return { media: [...media, ...before], openMessage: joinedTexts(texts) };
}

/**
 * Returns the parts of a message. If the sender's name was sent, it precedes them: in the first part if that is a text,
 * or else as a text part of its own.
 */
export function namedParts({ name, parts }: ChatMessage): readonly Part[] {
  if (!name) return parts;
  const [first, ...rest] = parts;
  if (first?.type === 'text') return [{ ...first, text: `${name}: ${first.text}` }, ...rest];
  return [{ type: 'text', text: `${name}: ` }, ...parts];
}

function joinedTexts(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

/**
 * Joins the text parts of a message with line breaks; other parts are omitted. The sender's name, if one was sent,
 * becomes part of the text, because chat templates know only roles.
 */
export function messageText({ name, parts }: ChatMessage): string {
  const text = joinedTexts(parts);
  return name ? `${name}: ${text}` : text;
}

function system(instructions: readonly ChatMessage[]): ChatMessage {
  const text = [TASK_SYSTEM, ...instructions.map(messageText)].join('\n\n');
  return textMessage('system', text);
}

/**
 * Returns the text of one task for the model: a line for each field. `language` is that of the answer's values; if
 * undefined, the model chooses.
 */
export function taskText(task: Task, language: Task['language']): string {
  const lines =
    task.type === 'decide'
      ? [`Question: ${task.question}`, ...optionLines(task)]
      : [`Extract: ${task.instruction}`, ...shapeLine(task.shape)];
  if (task.type === 'decide' && isInstructed(task)) lines.push(`Instruction: ${task.instruction}`);
  if (language) lines.push(`Language of the values: ${LANGUAGE_NAMES[language]}`);
  return lines.join('\n');
}

/** Formats the options: a line with all of them, and a line for each one that has a description. */
function optionLines({ options, descriptions = [] }: DecideTask): string[] {
  if (!options) return [];
  const described = options.flatMap((option, i) =>
    descriptions[i] ? [`${JSON.stringify(option)}: ${descriptions[i]}`] : [],
  );
  return [`Options: ${JSON.stringify(options)}`, ...described];
}

/** Tells whether a task has an instruction that is not blank. */
export function isInstructed({ instruction }: DecideTask): boolean {
  return instruction !== undefined && instruction.trim() !== '';
}

function shapeLine(shape: Extract<Task, { type: 'extract' }>['shape']): string[] {
  switch (shape.kind) {
    case 'keys':
      return [`Keys: ${JSON.stringify(shape.keys)}`];
    case 'schema':
      return [
        ...(shape.keys ? [`Keys: ${JSON.stringify(shape.keys)}`] : []),
        `Schema: ${JSON.stringify(compactSchema(shape.schema))}`,
      ];
    default:
      return [];
  }
}

/** English name of each answer language, as the prompt writes it. */
const LANGUAGE_NAMES: Record<Language, string> = {
  en: 'English',
  es: 'Spanish',
  fr: 'French',
  de: 'German',
  it: 'Italian',
  pt: 'Portuguese',
  nl: 'Dutch',
  ru: 'Russian',
  ja: 'Japanese',
  ko: 'Korean',
  zh: 'Chinese',
  ar: 'Arabic',
  hi: 'Hindi',
  tr: 'Turkish',
  pl: 'Polish',
  sv: 'Swedish',
  da: 'Danish',
  no: 'Norwegian',
  fi: 'Finnish',
  cs: 'Czech',
};

/**
 * Returns what the prompt shows for a schema: shorthand with the same meaning if there is one (the inverse of
 * `lib/tasks/check-answer-schema.ts`), or else the schema with its definitions inlined. Shorthand takes about a quarter
 * of the tokens.
 */
export function compactSchema(schema: JsonSchema): Json {
  const short = inlineDefinitions(schema);
  return shorthandOf(short, false) ?? short;
}

const NAMES: readonly unknown[] = ['string', 'number', 'integer', 'boolean'];

/** Returns the shorthand node whose expansion is this schema; undefined if there is none. */
function shorthandOf(schema: Json | undefined, nullable: boolean): Json | undefined {
  if (schema === undefined || !isObject(schema)) return undefined;
  const { type, properties, required, additionalProperties, items, ...rest } = schema;
  if (Object.keys(rest).length > 0) return undefined;
  const name = nullable ? nullableName(type) : type;
  if (name === 'object') {
    if (!isObject(properties) || additionalProperties !== false || items !== undefined) return undefined;
    const names = Object.keys(properties);
    if (names.length === 0 || JSON.stringify(required) !== JSON.stringify(names)) return undefined;
    const fields: [string, Json][] = [];
    for (const key of names) {
      const field = shorthandOf(properties[key], true);
      if (field === undefined) return undefined;
      fields.push([key, field]);
    }
    return Object.fromEntries(fields);
  }
  if (properties !== undefined || required !== undefined || additionalProperties !== undefined) return undefined;
  if (name === 'array') {
    const item = shorthandOf(items, false);
    return item === undefined ? undefined : [item];
  }
  // The cast is safe: `NAMES` contains only strings.
  return items === undefined && NAMES.includes(name) ? (name as string) : undefined;
}

function nullableName(type: Json | undefined): Json | undefined {
  // The cast is safe, because the list has two items.
  return Array.isArray(type) && type.length === 2 && type[1] === 'null' ? (type[0] as Json) : undefined;
}
