import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hashSecret } from '../../../lib/keys.ts';
import { CLI_KEY, KeysStore } from '../keys-file.ts';

/**
 * Returns the secret of the API key that the command line uses for a server on the same machine. The first call creates
 * the key, named `CLI_KEY` and with all rights, and stores its secret in the file `cli-key` of the home folder, which
 * only its owner can read. `assay keys` lists and revokes the key like any other; the next call then creates a new one.
 *
 * @throws UsageError if `keys.json` cannot be read, written or locked
 * @throws Error if `keys.json` is damaged
 */
export async function localKey(home: string): Promise<string> {
  const file = join(home, 'cli-key');
  const store = new KeysStore(home);
  // Commands that start at the same time, as by `xargs -P`, share one key.
  return (
    (await savedKey(file, store)) ??
    store.alone('cli-key', async () => (await savedKey(file, store)) ?? makeKey(file, store))
  );
}

/** Returns the secret in the file; null if it is not that of the key `CLI_KEY`. */
async function savedKey(file: string, store: KeysStore): Promise<string | null> {
  const known = (await store.list()).find((key) => key.name === CLI_KEY);
  const saved = (await readFile(file, 'utf8').catch(() => '')).trim();
  return saved && known?.sha256 === (await hashSecret(saved)) ? saved : null;
}

async function makeKey(file: string, store: KeysStore): Promise<string> {
  if ((await store.list()).some((key) => key.name === CLI_KEY)) await store.revoke(CLI_KEY);
  const secret = await store.create({ name: CLI_KEY, models: ['*'], scopes: ['admin'] });
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
  await chmod(file, 0o600);
  return secret;
}
