/**
 * Words that start this program in a shell, for messages with a command to paste. A checkout runs the TypeScript files
 * themselves, and has no `assay` on the path.
 */
export const COMMAND = import.meta.url.endsWith('.ts') ? 'npm run -s assay --' : 'assay';

/** Quotes a text as one word of a POSIX shell. Returns it unchanged if it needs no quotes. */
export function shellWord(text: string): string {
  return /^[\w./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
