import * as v from 'valibot';
import { type Draft, newTask, StoredDraft } from './task.ts';

/** Name of the session storage item with the draft. Only this browser tab can read it. */
const DRAFT = 'assay-draft';

/** Returns the draft that was stored before the page was reloaded; undefined if there is none or it cannot be read. */
export function storedDraft(): Draft | undefined {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), StoredDraft), sessionStorage.getItem(DRAFT));
  return read.success ? { ...read.output, tasks: read.output.tasks.map(newTask) } : undefined;
}

/** Stores a draft in session storage, without its image or recording, which can be larger than the storage. */
export function storeDraft({ context, tasks, maxOutputTokens }: Draft): void {
  try {
    sessionStorage.setItem(DRAFT, JSON.stringify({ context, tasks, maxOutputTokens } satisfies StoredDraft));
  } catch {
    // The text is too long for the storage. A reload then shows the first example.
    sessionStorage.removeItem(DRAFT);
  }
}
