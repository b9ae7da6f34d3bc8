import type { GuardSettings } from '../../handlers/context.ts';
import { messageOf } from '../../lib/errors.ts';
import { type ApiKey, type KeyStore, listedKeys, type StoredKey } from '../../lib/keys.ts';
import { COMMAND, shellWord } from './command.ts';
import type { ServerConfig } from './config.ts';
import { CLI_KEY, givenKey, type KeysStore } from './keys-file.ts';
import { isLoopback } from './loopback.ts';
import { UsageError } from './usage-error.ts';

/** Holds the server's access rules: the API keys, and the `Host` and `Origin` headers, that it accepts. */
export interface Access {
  keys: KeyStore;
  /** Returns the key with a name; null if there is none. */
  keyNamed(name: string): Promise<ApiKey | null>;
  /** True if the routes of the model server need a key, too, because other machines can reach the server. */
  keyForModels: boolean;
  guard: GuardSettings;
  /**
   * True if no key exists but that of the command line (`CLI_KEY`). `serve` then creates one, provided that it can show
   * it on a terminal.
   */
  firstKey: boolean;
}

/**
 * Returns the access rules of a server: it accepts `config.apiKey` and the keys in `filed`. On a loopback address it
 * may start without any key; that of the command line (`CLI_KEY`) does not count as one.
 *
 * @param warn reports what the operator should change while the server runs: a damaged `keys.json`, or one that others
 *   may read
 * @throws UsageError if there is no key and other machines can reach `config.host` (docs/model-api.md, M-19), or if
 *   `keys.json` cannot be read
 * @throws Error if `keys.json` is damaged
 */
export async function accessOf(
  config: ServerConfig,
  filed: KeysStore,
  warn: (text: string) => void = () => undefined,
): Promise<Access> {
  const given = config.apiKey === undefined ? [] : [await givenKey(config.apiKey)];
  const loopbackOnly = isLoopback(config.host);
  if (!loopbackOnly && config.apiKey !== undefined && config.apiKey.length < LEAST_SECRET) {
    throw new UsageError(
      `Other machines can reach ${config.host}, so a key needs at least ${LEAST_SECRET} characters, and this one has ${config.apiKey.length}. Make one: ${COMMAND} keys add my-key, or openssl rand -hex 24`,
    );
  }
  const exposed = filed.exposure();
  if (exposed) warn(exposed);
  const none = given.length === 0 && (await filed.list()).every(({ name }) => name === CLI_KEY);
  if (none && !loopbackOnly) {
    throw new UsageError(
      `Other machines can reach ${config.host}, so the server needs an API key. Make one first:\n  ${COMMAND} keys add my-key --admin --home ${shellWord(config.home)}\n` +
        'Or give one with --api-key-file or ASSAY_API_KEY. Or serve only this machine: --host 127.0.0.1',
    );
  }
  return {
    ...keyStore(given, filed, warn),
    keyForModels: !loopbackOnly,
    guard: { loopbackOnly, allowOrigins: config.allowOrigin },
    firstKey: none,
  };
}

/**
 * Creates a key named `default` with all rights and returns its secret. Throws `UsageError` if `keys.json` cannot be
 * written.
 */
export function makeFirstKey(filed: KeysStore): Promise<string> {
  return filed.create({ name: 'default', models: ['*'], scopes: ['admin'] });
}

/** Least characters of a key that other machines may try to guess. */
const LEAST_SECRET = 24;

/**
 * Creates a key store of `given` and the keys in `filed`, which it lists again for every request. A key that another
 * process has just created or revoked therefore takes effect at once. While the file cannot be read, the keys of its
 * last good version stay valid; those of `given` never depend on it.
 */
function keyStore(
  given: readonly StoredKey[],
  filed: KeysStore,
  warn: (text: string) => void,
): Pick<Access, 'keys' | 'keyNamed'> {
  let good: readonly StoredKey[] = [];
  let reported = '';
  async function current(): Promise<readonly StoredKey[]> {
    try {
      good = await filed.list();
      reported = '';
    } catch (error) {
      const text = `${messageOf(error)} Until then the keys that were read before stay valid.`;
      if (text !== reported) warn(text);
      reported = text;
    }
    return good;
  }
  const all = async () => [...given, ...(await current())];
  return {
    keys: {
      command: `${COMMAND} keys add <name>`,
      find: async (sha256) => listedKeys(await all()).find(sha256),
    },
    keyNamed: async (name) => (await all()).find((key) => key.name === name) ?? null,
  };
}
