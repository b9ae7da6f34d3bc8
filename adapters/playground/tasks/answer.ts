import type { TaskDraft } from './task.ts';

/** The parts of a `POST /v1/tasks` response that the page shows. */
export interface TasksResponse {
  results: Record<string, Record<string, unknown>>;
  choices: { finish_reason: string }[];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

/** One answer, ready to be shown. */
export interface Answer {
  name: string;
  /** The answer of a decide task, or the fields of an extract task. */
  rows: { label: string; value: string | null }[];
}

/** Returns the answers in the order of the tasks: names such as `10` would move in an object. */
export function answersOf(tasks: readonly TaskDraft[], { results }: TasksResponse): Answer[] {
  return tasks.map(({ name, type }) => {
    const result = results[name] ?? {};
    if (type === 'extract') {
      return { name, rows: Object.entries(result).map(([label, value]) => ({ label, value: shown(value) })) };
    }
    const reason = result.reason === undefined ? [] : [{ label: 'reason', value: shown(result.reason) }];
    return { name, rows: [{ label: 'answer', value: shown(result.value) }, ...reason] };
  });
}

function shown(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
