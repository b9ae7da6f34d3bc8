import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
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
  const keys = await store.list();
  const saved = (await readFile(file, 'utf8').catch(() => '')).trim();
  const known = keys.find((key) => key.name === CLI_KEY);
  if (saved && known?.sha256 === (await hashSecret(saved))) return saved;
  if (known) await store.revoke(CLI_KEY);
  const secret = await store.create({ name: CLI_KEY, models: ['*'], scopes: ['admin'] });
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
  await chmod(file, 0o600);
  return secret;
}
