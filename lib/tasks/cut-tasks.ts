import type { CutTasks } from '../contract/batch.ts';

/** Name of the response header that lists the cut tasks (docs/interface.md, D-33). */
export const CUT_TASKS_HEADER = 'assay-cut-tasks';

/**
 * Maximum length in characters of the value of `assay-cut-tasks`. Proxies and clients allow 4 to 16 KiB for all headers
 * together.
 */
const MOST_CHARACTERS = 2_048;

/**
 * Returns the value of the header `assay-cut-tasks`: names separated by commas, and `+3` at the end if 3 more do not
 * fit. Task names contain only characters that are allowed in a header (docs/interface.md, D-4), so they need no
 * encoding.
 */
export function cutTasksText({ names, more }: CutTasks): string {
  const listed: string[] = [];
  let length = `+${names.length + more}`.length;
  for (const name of names) {
    length += name.length + 2;
    if (length > MOST_CHARACTERS) break;
    listed.push(name);
  }
  const left = names.length - listed.length + more;
  return [...listed, ...(left > 0 ? [`+${left}`] : [])].join(', ');
}

/**
 * Parses the value of the header `assay-cut-tasks` from an upstream's response. Returns undefined if the header is
 * absent (null) or names a task that is not in `asked`.
 *
 * @param asked names of the tasks that the upstream was sent
 */
export function readCutTasks(text: string | null, asked: readonly string[]): CutTasks | undefined {
  if (text === null) return undefined;
  const items = text.split(', ');
  const more = /^\+([1-9]\d{0,2})$/.exec(items.at(-1)!)?.[1];
  const names = more === undefined ? items : items.slice(0, -1);
  const known = new Set(asked);
  return names.every((name) => known.has(name)) ? { names, more: Number(more ?? 0) } : undefined;
}
