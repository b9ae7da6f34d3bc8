import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import { dataUrlOf } from '../../../lib/data-url.ts';
import { messageOf } from '../../../lib/errors.ts';
import { AUDIO_TYPES, IMAGE_TYPES, sniffAudio, sniffImage } from '../../../runtime/media/sniff.ts';
import { systemCode } from '../../../runtime/store/disk-error.ts';
import { serverConfig } from '../config.ts';
import { UsageError } from '../usage-error.ts';
import { once, repeated } from './parse-flags.ts';

export interface InputFlags extends MediaFlags {
  context?: string;
  file?: string;
}

/** Adds the flags of `InputFlags` to a command and returns it. */
export function inputFlags(command: Command): Command {
  const file = 'file with the text, also .pdf, .docx or .html (default: standard input)';
  return mediaFlags(
    command.option('-f, --file <path>', file, once).option('-c, --context <text>', 'the text itself', once),
  );
}

/**
 * Returns the text that the tasks are about: from `--context`, from `--file`, or else from standard input. With images
 * or audio the text is optional, so standard input is then read only for `--file -`.
 *
 * @param command example of the command, to which the error message appends ways to give a text
 * @throws UsageError if both flags are given, if the text cannot be read or is not UTF-8, or if there is no flag and
 *   standard input is a terminal
 */
export async function readContext(flags: InputFlags, command: string): Promise<string> {
  if (flags.context !== undefined && flags.file !== undefined)
    throw new UsageError('--context and --file both give a text. Use only one of them.');
  if (flags.context !== undefined) return flags.context;
  if (flags.file !== undefined) return readDocument(flags.file);
  if (flags.image || flags.audio) return '';
  if (process.stdin.isTTY) {
    throw new UsageError(
      `There is no text to read. Pipe it in, or name a file: ${command} < mail.txt, or ${command} --file mail.txt`,
    );
  }
  return readStandardInput();
}

/**
 * Returns the text of a file: of a PDF, DOCX or HTML document as a reader sees it, which a process of its own extracts
 * because the file is not trusted; of any other file as `readTextInput` does.
 */
async function readDocument(file: string): Promise<string> {
  if (file === '-') return readStandardInput();
  const bytes = await readBytes(file);
  const { documentFormat } = await import('../../../runtime/media/document-text.ts');
  const format = documentFormat(bytes, file);
  if (!format) return readTextInput(file);
  const [{ MediaProcess }, { openIsolation }, { createLog }] = await Promise.all([
    import('../../../runtime/supervisor/media/media-process.ts'),
    import('../../../runtime/supervisor/isolation/isolation.ts'),
    import('../log.ts'),
  ]);
  const { isolation } = serverConfig({}, process.env);
  const media = new MediaProcess({
    log: createLog(process.env.ASSAY_DEBUG ? 'debug' : 'silent'),
    isolation: await openIsolation(isolation),
  });
  try {
    const text = await media.text(bytes, format, new AbortController().signal);
    if (text.trim() !== '') return text;
    throw new UsageError(`${resolve(file)} has no text. If it is a scan, read its pages with --image.`);
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    throw new UsageError(`${resolve(file)} cannot be read as ${format.toUpperCase()}. Convert it to text first.`, {
      cause,
    });
  } finally {
    media.close();
  }
}

let wasRead = false;

/** Reads all of standard input as UTF-8 text. Throws `UsageError` if it is not UTF-8 or was read already. */
export async function readStandardInput(): Promise<string> {
  if (wasRead) throw new UsageError('Standard input was read already. Give the text with --context or --file.');
  wasRead = true;
  const bytes = await buffer(process.stdin);
  try {
    return decoded(bytes);
  } catch (cause) {
    throw new UsageError('Standard input is not UTF-8 text. Convert it first, such as with iconv.', { cause });
  }
}

/** Reads a file as UTF-8 text; `-` is standard input. Throws `UsageError` if it cannot be read or is not UTF-8. */
export async function readTextInput(file: string): Promise<string> {
  if (file === '-') return readStandardInput();
  try {
    return decoded(await readFile(file));
  } catch (cause) {
    // Shows the absolute path, because `npm run` changes to the checkout's folder, and relative paths count from there.
    throw new UsageError(`${resolve(file)} ${whyNotRead(cause)}.`, { cause });
  }
}

/** Returns the end of a sentence that begins with a file's name: why reading it as text failed with `cause`. */
export function whyNotRead(cause: unknown): string {
  const code = systemCode(cause);
  if (code === 'ENOENT') return 'does not exist';
  if (code === 'EISDIR') return 'is a folder';
  return /^E[A-Z0-9]+$/u.test(code ?? '') ? `cannot be read (${code})` : 'is not UTF-8 text';
}

/**
 * Parses `fileOrText` as JSON if it begins with `{` or `[`; otherwise reads the file of that name, or standard input
 * for `-`, and parses its content. Throws `UsageError` if the file cannot be read or the JSON is invalid. `name` stands
 * for `fileOrText` in the message if that is JSON itself.
 */
export async function readJsonInput(fileOrText: string, name: string): Promise<unknown> {
  return JSON.parse(await readJsonText(fileOrText, name));
}

/** Returns the JSON text itself, as `readJsonInput` finds it. */
export async function readJsonText(fileOrText: string, name: string): Promise<string> {
  const source = isJsonText(fileOrText) ? fileOrText : await readTextInput(fileOrText);
  try {
    JSON.parse(source);
    return source;
  } catch (cause) {
    throw new UsageError(`${isJsonText(fileOrText) ? name : fileOrText} is not JSON: ${messageOf(cause)}`, { cause });
  }
}

/** Tells whether an argument is JSON itself, and not the name of a file. */
export function isJsonText(fileOrText: string): boolean {
  return /^\s*[[{]/.test(fileOrText);
}

/**
 * Decodes UTF-8 and writes the line ends of Windows as `\n`, because small models answer worse about `\r\n`. Throws if
 * the bytes are not UTF-8.
 */
function decoded(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replaceAll('\r\n', '\n');
}

export interface MediaFlags {
  image?: string[];
  audio?: string[];
}

/** Adds the flags of `MediaFlags` to a command and returns it. `place` is the end of their help texts. */
export function mediaFlags(command: Command, place = ''): Command {
  return command
    .option('-i, --image <path>', `file with an image for the model; repeat the flag for each${place}`, repeated)
    .option('--audio <path>', `file with a recording for the model; repeat the flag for each${place}`, repeated);
}

/** Describes a media file as an item of a request's `images` or `audio`. */
export interface SentMedia {
  type: 'base64';
  mime_type: string;
  data: string;
}

/** Describes the media fields of a request's body, whose items are of type `T`. A field without files is absent. */
export interface MediaFields<T = SentMedia> {
  images?: T[];
  audio?: T[];
}

/**
 * Reads the files of `--image` and `--audio`. Throws `UsageError` for a file that cannot be read or has an unsupported
 * type.
 */
export async function readMedia({ image, audio }: MediaFlags): Promise<MediaFields> {
  const readImage = (file: string) => readMediaFile(file, 'an image', sniffImage, IMAGE_TYPES);
  const readRecording = (file: string) => readMediaFile(file, 'a recording', sniffAudio, AUDIO_TYPES);
  return {
    ...(image ? { images: await Promise.all(image.map(readImage)) } : {}),
    ...(audio ? { audio: await Promise.all(audio.map(readRecording)) } : {}),
  };
}

async function readMediaFile(
  file: string,
  what: string,
  sniff: (bytes: Uint8Array) => string | null | undefined,
  types: readonly string[],
): Promise<SentMedia> {
  const bytes = await readBytes(file);
  const type = sniff(bytes);
  if (type) return { type: 'base64', mime_type: type, data: bytes.toString('base64') };
  throw new UsageError(`${resolve(file)} is not ${what} of a supported type. Supported are ${types.join(', ')}.`);
}

/** Reads a file. Throws `UsageError` if that fails. */
function readBytes(file: string): Promise<Buffer> {
  return readFile(file).catch((cause: unknown) => {
    throw new UsageError(`${resolve(file)} ${whyNotRead(cause)}.`, { cause });
  });
}

/** Returns the same fields with each file as a `data:` URL. */
export function asDataUrls({ images, audio }: MediaFields): MediaFields<string> {
  const url = ({ mime_type: mimeType, data }: SentMedia) => dataUrlOf({ mimeType, data });
  return { ...(images ? { images: images.map(url) } : {}), ...(audio ? { audio: audio.map(url) } : {}) };
}
