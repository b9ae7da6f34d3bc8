import { stripVTControlCharacters } from 'node:util';

/** Where a command writes: answers to standard output, everything about them to standard error. */
export const screen = {
  /** An answer, or a part of one. */
  out: (text: string): void => void process.stdout.write(text),
  line: (text: string): void => void process.stdout.write(`${text}\n`),
  /** A word to a person. */
  note: (text: string): void => void process.stderr.write(`${text}\n`),
  json: (value: unknown): void => void process.stdout.write(`${JSON.stringify(value, null, 2)}\n`),
};

/** Whether a person watches standard error. */
export const isWatched = (): boolean => process.stderr.isTTY === true;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/**
 * Text from a model or a server, for a terminal: control sequences could move the cursor, set the title or write to the
 * clipboard, so they are left out. Into a pipe it goes as it is.
 */
export function shown(text: string, stream: { isTTY?: boolean } = process.stdout): string {
  return stream.isTTY ? stripVTControlCharacters(text).replace(CONTROLS, '') : text;
}

/** Rows with their columns aligned. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
