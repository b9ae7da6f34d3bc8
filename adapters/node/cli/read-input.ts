import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { messageOf } from '../../../lib/errors.ts';
import { systemCode } from '../../../runtime/store/disk-error.ts';
import { UsageError } from '../usage-error.ts';

export interface InputFlags {
  context?: string;
  file?: string;
  image?: string[];
  audio?: string[];
}

/**
 * Returns the text that tasks read: from `--context`, from a file, or from standard input. With images or audio the
 * text may be missing; standard input is then read only if the file is `-`.
 *
 * @throws UsageError if both `--context` and `--file` are given, or standard input is a terminal
 */
export async function readContext(flags: InputFlags, command: string): Promise<string> {
  if (flags.context !== undefined && flags.file !== undefined)
    throw new UsageError('Give --context or --file, not both.');
  if (flags.context !== undefined) return flags.context;
  if (flags.file !== undefined && flags.file !== '-') return readText(flags.file);
  if ((flags.image || flags.audio) && flags.file === undefined) return '';
  if (process.stdin.isTTY) {
    throw new UsageError(
      `There is no text to read. Pipe it in, or name a file: ${command} < mail.txt, or ${command} --file mail.txt`,
    );
  }
  return text(process.stdin);
}

/** Reads a file as text. Throws `UsageError` with a plain message. */
export async function readText(file: string): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (cause) {
    // Names the absolute path, because `npm run` starts in the checkout, wherever it was typed.
    throw new UsageError(`${resolve(file)} ${whyNotRead(cause)}.`, { cause });
  }
}

/** Says why a file was not read, as the end of a sentence. */
export function whyNotRead(cause: unknown): string {
  const code = systemCode(cause);
  if (code === 'ENOENT') return 'is not there';
  if (code === 'EISDIR') return 'is a folder';
  return /^E[A-Z0-9]+$/u.test(code ?? '') ? `cannot be read (${code})` : 'is not UTF-8 text';
}

/**
 * Reads JSON from a file, or parses it directly if the argument begins with `{` or `[`. Throws `UsageError` if it is
 * not valid.
 */
export async function readJson(fileOrText: string): Promise<unknown> {
  const inPlace = /^\s*[[{]/.test(fileOrText);
  const source = inPlace ? fileOrText : await readText(fileOrText);
  try {
    return JSON.parse(source);
  } catch (cause) {
    throw new UsageError(`${inPlace ? 'The text' : fileOrText} is not JSON: ${messageOf(cause)}`, { cause });
  }
}
