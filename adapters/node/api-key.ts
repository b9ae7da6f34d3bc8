import { readFileSync, statSync } from 'node:fs';
import { systemCode } from '../../runtime/store/disk-error.ts';
import { UsageError } from './usage-error.ts';

/** Describes the flags that give an API key: directly, or in a file. */
export interface KeyFlags {
  apiKey?: string;
  apiKeyFile?: string;
}

/** Help texts, shared by every command that takes a key. */
export const KEY_HELP = {
  visible: 'other users of this machine can see it in the process list; prefer the file or the variable',
  file: 'file that contains only the key (env: ASSAY_API_KEY_FILE)',
} as const;

/** Largest accepted key file, in bytes; such a file has a single line. */
const MAX_FILE_BYTES = 4096;

/**
 * Returns the API key that the flags give, or else the variables `ASSAY_API_KEY` and `ASSAY_API_KEY_FILE`; undefined if
 * neither give one.
 *
 * @throws UsageError if both a key and a file are given, or if the file cannot be read or does not contain one key
 */
export function apiKeyOf(flags: KeyFlags, env: Record<string, string | undefined>): string | undefined {
  const given = { apiKey: env.ASSAY_API_KEY || undefined, apiKeyFile: env.ASSAY_API_KEY_FILE || undefined };
  const byFlag = flags.apiKey !== undefined || flags.apiKeyFile !== undefined;
  const { apiKey, apiKeyFile } = byFlag ? flags : given;
  if (apiKey !== undefined && apiKeyFile !== undefined) {
    const [one, other] = byFlag ? ['--api-key', '--api-key-file'] : ['ASSAY_API_KEY', 'ASSAY_API_KEY_FILE'];
    throw new UsageError(`${one} and ${other} both give a key. Use only one.`);
  }
  return apiKeyFile === undefined ? apiKey : keyInFile(apiKeyFile);
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
