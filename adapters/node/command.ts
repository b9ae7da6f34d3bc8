/**
 * Starts this program in a shell, for messages that name a command to paste. A checkout runs the TypeScript files
 * themselves, and has no `assay` on the path.
 */
export const COMMAND = import.meta.url.endsWith('.ts') ? 'npm run -s assay --' : 'assay';

/** Quotes a text for a shell, if it needs quotes. */
export function shellWord(text: string): string {
  return /^[\w./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
