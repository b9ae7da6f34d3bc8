import { decisionsInput, type MediaFile, tasksMedia } from '../media/media-file.ts';

/** Holds one task in the editor. Lists are texts with an item on each line. */
export interface TaskDraft {
  /** Identifies the task in the editor, even after it was moved or renamed. */
  id: number;
  type: 'decide' | 'extract';
  name: string;
  /** The question of a decide task, the instruction of an extract task. */
  text: string;
  /** Options of a decide task, keys of an extract task. */
  list: string;
}

export interface Draft {
  context: string;
  /** An image or a recording beside the text; absent if there is none. */
  media?: MediaFile | undefined;
  tasks: TaskDraft[];
  maxOutputTokens: number;
}

export const items = (list: string): string[] =>
  list
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** Returns the body of `POST /v1/tasks`. */
export function tasksBody({ context, media, tasks, maxOutputTokens }: Draft, model: string) {
  return {
    model,
    context,
    ...(media ? tasksMedia(media) : {}),
    tasks: tasks.map(({ type, name, text, list }) => {
      const listed = items(list);
      if (type === 'decide') {
        return { type, name, question: text, ...(listed.length > 0 ? { options: listed } : {}) };
      }
      return { type, name, instruction: text, ...(listed.length > 0 ? { keys: listed } : {}) };
    }),
    max_output_tokens: maxOutputTokens,
  };
}

/** Tells whether `POST /v1/decisions` can answer all tasks. It scores options, so every decide task must have some. */
export const hasProbabilities = ({ tasks }: Draft): boolean =>
  tasks.every(({ type, list }) => type === 'extract' || items(list).length > 0);

/** Returns the body of `POST /v1/decisions`. */
export function decisionsBody({ context, media, tasks, maxOutputTokens }: Draft, model: string) {
  return {
    model,
    input: media ? decisionsInput(media, context) : context,
    questions: tasks.map(({ type, name, text, list }) => {
      const listed = items(list);
      if (type === 'decide') {
        return { type: 'choice', name, instructions: text, choices: listed.map((value) => ({ value })) };
      }
      return { type, name, instructions: text, ...(listed.length > 0 ? { keys: listed } : {}) };
    }),
    max_output_tokens: maxOutputTokens,
  };
}

let next = 1;

export function newTask(fields: Omit<TaskDraft, 'id'>): TaskDraft {
  return { id: next++, ...fields };
}

/** Returns a task for the end of a list, with a name that no other task has. */
export function anotherTask(tasks: readonly TaskDraft[]): TaskDraft {
  let number = tasks.length + 1;
  while (tasks.some(({ name }) => name === `task_${number}`)) number += 1;
  return newTask({ type: 'decide', name: `task_${number}`, text: '', list: 'yes\nno' });
}

/** Returns a copy of a list with one item moved by `step` places; unchanged if there is no such place. */
export function moved<T>(list: readonly T[], from: number, step: number): T[] {
  const to = from + step;
  const copy = [...list];
  const [item] = copy.splice(from, 1);
  if (item === undefined || to < 0 || to > copy.length) return [...list];
  copy.splice(to, 0, item);
  return copy;
}
