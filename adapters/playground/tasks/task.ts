import * as v from 'valibot';
import type { ModelCapabilities } from '../../../lib/schema/model-list.ts';
import { decisionsInput, type PickedFile, tasksMedia } from '../media/media-file.ts';

/** One task in the editor. */
const TaskFields = v.object({
  type: v.picklist(['decide', 'multi', 'extract', 'fields']),
  name: v.string(),
  /** The question of a decide or multi task, the instruction of the others. */
  text: v.string(),
  /**
   * Options of a decide or multi task, keys of an extract task, or typed fields such as `total: number`, one on each
   * line.
   */
  list: v.string(),
  /** True if a decide task with options may be answered by that the text does not say. */
  unsure: v.exactOptional(v.boolean()),
});
type TaskFields = v.InferOutput<typeof TaskFields>;

/** The part of a draft that is kept when the page is reloaded. */
export const StoredDraft = v.object({
  context: v.string(),
  tasks: v.pipe(v.array(TaskFields), v.minLength(1)),
  maxOutputTokens: v.fallback(v.number(), 64),
});
export type StoredDraft = v.InferOutput<typeof StoredDraft>;

export interface TaskDraft extends TaskFields {
  /** Identifies the task in the editor, even after it was moved or renamed. */
  id: number;
}

export interface Draft extends StoredDraft {
  tasks: TaskDraft[];
  /** An image or a recording beside the text; absent if there is none. */
  media?: PickedFile | undefined;
}

/** Returns the lines of a text, trimmed, without empty ones. */
export const items = (list: string): string[] =>
  list
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** Returns the body of `POST /v1/tasks` for a draft. `model` is a model id. */
export function tasksRequest({ context, media, tasks, maxOutputTokens }: Draft, model: string) {
  return {
    model,
    context,
    ...(media ? tasksMedia(media) : {}),
    tasks: tasks.map((task) => {
      const { type, name, text, list } = task;
      const listed = items(list);
      if (type === 'multi') return { type, name, question: text, options: listed };
      if (type === 'decide') {
        return { type, name, question: text, ...(listed.length > 0 ? { options: listed, ...unsureOf(task) } : {}) };
      }
      return { type, name, instruction: text, ...(listed.length > 0 ? { keys: listed } : {}) };
    }),
    max_output_tokens: maxOutputTokens,
  };
}

/** Returns the member `unsure` of a question, if the task has it. */
const unsureOf = ({ unsure }: TaskFields) => (unsure ? { unsure } : {});

/** Tells whether a draft has typed fields, which only `POST /v1/extractions` answers. */
export const hasFields = ({ tasks }: Draft): boolean => tasks.some(({ type }) => type === 'fields');

/** Returns the name and type of a typed field; a line without a type is a text. */
export function typedField(line: string): { name: string; type: string } {
  const [, name = line, type = 'text'] = /^(.*?)\s*:\s*([a-z]+)$/.exec(line) ?? [];
  return { name, type };
}

/** Returns the body of `POST /v1/extractions` for a draft: typed fields, beside questions for its other tasks. */
export function extractionsRequest({ context, media, tasks, maxOutputTokens }: Draft, model: string) {
  const fields: Record<string, object> = {};
  const questions: Record<string, object> = {};
  for (const task of tasks) {
    const { type, name, text, list } = task;
    const listed = items(list);
    if (type === 'fields') {
      for (const line of listed) {
        const field = typedField(line);
        const items = field.type === 'list' ? { items: 'text' } : {};
        const asked = text.trim() === '' ? {} : { instructions: `${field.name}: ${text}` };
        fields[field.name] = { type: field.type, ...items, ...asked };
      }
    } else if (type === 'extract') {
      questions[name] = { type, instructions: text, ...(listed.length > 0 ? { keys: listed } : {}) };
    } else if (type === 'multi') questions[name] = { type, instructions: text, criteria: listed };
    else if (listed.length > 0)
      questions[name] = { type: 'choice', instructions: text, criteria: listed, ...unsureOf(task) };
    else fields[name] = { type: 'text', free: true, instructions: text };
  }
  return {
    model,
    state: context,
    ...(media ? { [media.kind === 'image' ? 'images' : 'audio']: [media.url] } : {}),
    fields,
    ...(Object.keys(questions).length > 0 ? { questions } : {}),
    options: { span_unit: 'utf16' },
    max_output_tokens: maxOutputTokens,
  };
}

/** Tells whether `POST /v1/decisions` can answer all tasks. It scores options, so every decide task must have some. */
export const hasProbabilities = ({ tasks }: Draft): boolean =>
  tasks.every(({ type, list }) => type === 'extract' || items(list).length > 0);

/** Returns why the loaded model cannot answer a task; empty if it can, or what it can do is not known. */
export function obstacle({ type, list }: TaskFields, abilities: ModelCapabilities | null): string {
  if (!abilities) return '';
  if (type === 'extract' || type === 'fields')
    return abilities.extract === false ? 'The loaded model answers questions with options and extracts nothing.' : '';
  const free = type === 'decide' && items(list).length === 0;
  return free && abilities.decide === 'options' ? 'The loaded model writes no answers of its own. Give options.' : '';
}

/** Returns the body of `POST /v1/decisions` for a draft with `hasProbabilities`. `model` is a model id. */
export function decisionsRequest({ context, media, tasks, maxOutputTokens }: Draft, model: string) {
  return {
    model,
    input: media ? decisionsInput(media, context) : context,
    questions: tasks.map((task) => {
      const { type, name, text, list } = task;
      const listed = items(list);
      const choices = listed.map((value) => ({ value }));
      if (type === 'multi') return { type, name, instructions: text, choices };
      if (type === 'decide') return { type: 'choice', name, instructions: text, choices, ...unsureOf(task) };
      return { type, name, instructions: text, ...(listed.length > 0 ? { keys: listed } : {}) };
    }),
    max_output_tokens: maxOutputTokens,
  };
}

let next = 1;

/** Returns a task with these fields and an id that no other task of the page has. */
export function newTask(fields: TaskFields): TaskDraft {
  return { ...fields, id: next++ };
}

/** Returns a new decide task to add to `tasks`, with a name that none of them has. */
export function anotherTask(tasks: readonly TaskDraft[]): TaskDraft {
  let number = tasks.length + 1;
  while (tasks.some(({ name }) => name === `task_${number}`)) number += 1;
  return newTask({ type: 'decide', name: `task_${number}`, text: '', list: 'yes\nno' });
}

/** Returns a copy of a list in which the item at index `from` is moved by `step`; unchanged if that is out of range. */
export function moved<T>(list: readonly T[], from: number, step: number): T[] {
  const to = from + step;
  const copy = [...list];
  const [item] = copy.splice(from, 1);
  if (item === undefined || to < 0 || to > copy.length) return [...list];
  copy.splice(to, 0, item);
  return copy;
}
