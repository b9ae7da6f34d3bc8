import type { GuardSettings } from '../../handlers/context.ts';
import { type KeyStore, listedKeys, type StoredKey } from '../../lib/keys.ts';
import { COMMAND, shellWord } from './command.ts';
import type { ServerConfig } from './config.ts';
import { CLI_KEY, givenKey, type KeysStore } from './keys-file.ts';
import { isLoopback } from './loopback.ts';
import { UsageError } from './usage-error.ts';

/** Holds the server's access rules: the API keys that it accepts, and which web pages and Hosts it refuses. */
export interface Access {
  keys: KeyStore;
  /** True if the routes of the model server need a key, too: other machines can reach the server. */
  keyForModels: boolean;
  guard: GuardSettings;
  /** True if there is no key yet. `serve` then creates the first one, provided that it can show it on a terminal. */
  firstKey: boolean;
}

/**
 * Returns the access rules. The server accepts the configured key and the keys in the home folder. On a loopback
 * address it may start without any key; the command line's own key does not count.
 *
 * @throws UsageError if there is no key and other machines can reach the address (docs/interface.md, M-19)
 */
export async function accessOf(config: ServerConfig, filed: KeysStore): Promise<Access> {
  const given = config.apiKey === undefined ? [] : [await givenKey(config.apiKey)];
  const loopbackOnly = isLoopback(config.host);
  const none = given.length === 0 && (await filed.list()).every(({ name }) => name === CLI_KEY);
  if (none && !loopbackOnly) {
    throw new UsageError(
      `Other machines can reach ${config.host}, so the server needs an API key. Make one first:\n  ${COMMAND} keys add my-key --admin --home ${shellWord(config.home)}\n` +
        'Or give one with --api-key-file or ASSAY_API_KEY. Or serve only this machine: --host 127.0.0.1',
    );
  }
  return {
    keys: keyStore(given, filed),
    keyForModels: !loopbackOnly,
    guard: { loopbackOnly, allowOrigins: config.allowOrigin },
    firstKey: none,
  };
}

/** Creates the first key and returns its secret, to be shown once. */
export function makeFirstKey(filed: KeysStore): Promise<string> {
  return filed.create({ name: 'default', models: ['*'], scopes: ['admin'] });
}

/**
 * Creates a key store that looks at the stored keys for every request. A key that another process has just created or
 * revoked therefore takes effect at once.
 */
function keyStore(given: readonly StoredKey[], filed: KeysStore): KeyStore {
  return { find: async (sha256) => listedKeys([...given, ...(await filed.list())]).find(sha256) };
}
