/** Lists the tasks of a batch whose answers the budget cut. */
export interface CutTasks {
  /** Their names, in the order sent. */
  names: readonly string[];
  /** The number of further tasks that `names` omits, because an upstream's header had no space for them. */
  more: number;
}

/** The response header that names the cut tasks (docs/interface.md, D-33). */
export const CUT_TASKS_HEADER = 'assay-cut-tasks';

/** Characters of the header. Proxies and clients allow 4 to 16 KiB for all headers together. */
const MOST_CHARACTERS = 2_048;

/**
 * Returns the header's text: names with commas between, and `+3` at the end if 3 more do not fit. Task names consist of
 * characters that a header may have (D-4), so they need no encoding.
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

/** Reads the header of an upstream. Returns undefined without one, or if it names a task that was not sent. */
export function readCutTasks(text: string | null, asked: readonly string[]): CutTasks | undefined {
  if (text === null) return undefined;
  const items = text.split(', ');
  const more = /^\+([1-9]\d{0,2})$/.exec(items.at(-1)!)?.[1];
  const names = more === undefined ? items : items.slice(0, -1);
  const known = new Set(asked);
  return names.every((name) => known.has(name)) ? { names, more: Number(more ?? 0) } : undefined;
}
