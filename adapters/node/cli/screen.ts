import { stripVTControlCharacters } from 'node:util';
import type { LoadResponse } from '../../../lib/schema/model-operations.ts';

/** Writes answers to standard output, and messages for people to standard error. */
export const screen = {
  /** Writes an answer, or a part of it, without a line break. */
  out: (text: string): void => void process.stdout.write(text),
  line: (text: string): void => void process.stdout.write(`${text}\n`),
  /** Writes a message to standard error. */
  note: (text: string): void => void process.stderr.write(`${text}\n`),
  json: (value: unknown): void => void process.stdout.write(`${JSON.stringify(value, null, 2)}\n`),
};

/** Tells whether standard error is a terminal. */
export const isWatched = (): boolean => process.stderr.isTTY === true;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/**
 * Removes control sequences from a text of a model or a server if `stream` is a terminal, where they could move the
 * cursor, set the title or write to the clipboard. For a pipe or a file, returns the text unchanged.
 */
export function shown(text: string, stream: { isTTY?: boolean } = process.stdout): string {
  return stream.isTTY ? stripVTControlCharacters(text).replace(CONTROLS, '') : text;
}

/** Formats rows as lines of text with aligned columns. The first row determines the number of aligned columns. */
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

type PrecisionFields = Pick<LoadResponse, 'precision' | 'precision_reason' | 'precision_warning'>;

/**
 * Writes to standard error the number format of a model's weights, why it was chosen, and a warning if it may make
 * answers worse.
 */
export function showPrecision(shown: PrecisionFields): void {
  const { precision, precision_reason: why } = shown;
  if (precision) screen.note(`Weights in ${precision}${why ? `: ${why}` : ''}.`);
  warnOfPrecision(shown);
}

/** Warns on standard error if the number format of the weights may make answers worse. */
export function warnOfPrecision({ precision_warning: warning }: PrecisionFields): void {
  if (warning) screen.note(`Warning: ${warning}`);
}
