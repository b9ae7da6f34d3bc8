import { readFileSync, statSync } from 'node:fs';
import { systemCode } from '../../runtime/store/disk-error.ts';
import { UsageError } from './usage-error.ts';

/** Describes the flags `--api-key`, with the key itself, and `--api-key-file`, with the path of a file that has it. */
export interface KeyFlags {
  apiKey?: string;
  apiKeyFile?: string;
}

/** Holds parts of the help texts of `--api-key` (`visible`) and `--api-key-file` (`file`), for every command. */
export const KEY_HELP = {
  visible: 'other users of this machine can see it in the process list; prefer the file or the variable',
  file: 'file that contains only the key (env: ASSAY_API_KEY_FILE)',
} as const;

/** Maximum size of a key file in bytes; a key has at most 256. */
const MAX_FILE_BYTES = 4096;

/**
 * Returns the API key that the flags give; without these flags, the one that the variable `ASSAY_API_KEY` or
 * `ASSAY_API_KEY_FILE` gives; undefined if no flag or variable is set. An empty variable counts as not set.
 *
 * @throws UsageError if both flags, or without flags both variables, are set; or if the file cannot be read, has more
 *   than 4,096 bytes, or contains anything but one key; or if the key is not visible ASCII
 */
export function apiKeyOf(flags: KeyFlags, env: Record<string, string | undefined>): string | undefined {
  const given = { apiKey: env.ASSAY_API_KEY || undefined, apiKeyFile: env.ASSAY_API_KEY_FILE || undefined };
  const byFlag = flags.apiKey !== undefined || flags.apiKeyFile !== undefined;
  const { apiKey, apiKeyFile } = byFlag ? flags : given;
  if (apiKey !== undefined && apiKeyFile !== undefined) {
    const [one, other] = byFlag ? ['--api-key', '--api-key-file'] : ['ASSAY_API_KEY', 'ASSAY_API_KEY_FILE'];
    throw new UsageError(`${one} and ${other} both give a key. Use only one.`);
  }
  const key = apiKeyFile === undefined ? apiKey : keyInFile(apiKeyFile);
  // Other characters cannot be sent in a header. An empty key is refused by the server.
  if (key === undefined || /^[\x21-\x7e]*$/.test(key)) return key;
  throw new UsageError('The API key has a space or a character that is not ASCII. Check that it was copied whole.');
}

function keyInFile(file: string): string {
  let text: string;
  try {
    text = statSync(file).size > MAX_FILE_BYTES ? '' : readFileSync(file, 'utf8').trim();
  } catch (cause) {
    const code = systemCode(cause);
    throw new UsageError(`The key file ${file} cannot be read (${code}). Name a file that contains only the key.`, {
      cause,
    });
  }
  if (/^[^\s]+$/.test(text)) return text;
  throw new UsageError(`The key file ${file} does not hold one key. Write only the key into it.`);
}
