import * as v from 'valibot';
import { hashSecret } from '../../lib/keys.ts';
import { COMMAND } from './command.ts';
import { type FiledKey, newSecret, StoredKeySchema } from './keys-file.ts';
import { UsageError } from './usage-error.ts';

/**
 * Runs wrangler with these arguments and returns its standard output. Rejects with an `Error` if wrangler cannot be run
 * or fails; the message contains its standard error.
 */
export type Wrangler = (args: readonly string[]) => Promise<string>;

/**
 * Describes the value that KV stores under a key's hash. The entry's metadata repeats this value, because listing a
 * namespace returns metadata but no values.
 */
const EdgeKey = v.object({ ...v.omit(StoredKeySchema, ['sha256']).entries, revoked: v.exactOptional(v.boolean()) });
type EdgeKey = v.InferOutput<typeof EdgeKey>;

const Listed = v.array(v.object({ name: v.string(), metadata: v.optional(v.unknown()) }));

/**
 * Manages the API keys of an edge, in the KV namespace KEYS of the wrangler.toml in the current folder. Every method
 * rejects with an `Error` if wrangler fails.
 */
export class EdgeKeys {
  readonly #wrangler: Wrangler;
  /**
   * Arguments of wrangler that select the namespace: `--binding KEYS`, the environment, and whether the namespace is on
   * Cloudflare or on this machine.
   */
  readonly #place: readonly string[];

  constructor(
    wrangler: Wrangler,
    { environment, where = ['--remote'] }: { environment: string; where?: readonly string[] },
  ) {
    this.#wrangler = wrangler;
    this.#place = ['--binding', 'KEYS', '--env', environment, ...where];
  }

  /** Returns all keys that are not revoked. Skips KV entries whose metadata is not that of a key. */
  async list(): Promise<readonly FiledKey[]> {
    const listed = v.parse(Listed, JSON.parse(await this.#wrangler(['kv', 'key', 'list', ...this.#place])));
    return listed.flatMap(({ name: sha256, metadata }) => {
      const key = v.safeParse(EdgeKey, metadata);
      if (!key.success || key.output.revoked) return [];
      const { revoked: _, ...rest } = key.output;
      return [{ ...rest, sha256 }];
    });
  }

  /** Creates a key and returns its secret, which is not stored. Throws `UsageError` if another key has this name. */
  async create(key: Omit<FiledKey, 'sha256' | 'created'>): Promise<string> {
    if ((await this.list()).some(({ name }) => name === key.name)) {
      throw new UsageError(`There is a key named ${key.name} already. Choose another name, or revoke that one first.`);
    }
    const secret = newSecret();
    await this.#put(await hashSecret(secret), { ...key, created: new Date().toISOString() });
    return secret;
  }

  /**
   * Revokes a key. Edges may accept it for up to 90 seconds more, because they cache keys
   * (`adapters/workers/keys/kv-keys.ts`). Throws `UsageError` if there is no key with this name.
   */
  async revoke(name: string): Promise<void> {
    const key = (await this.list()).find((one) => one.name === name);
    if (!key) throw new UsageError(`There is no key named ${name}. List the keys: ${COMMAND} keys list --edge`);
    const { sha256, ...rest } = key;
    await this.#put(sha256, { ...rest, revoked: true });
  }

  async #put(sha256: string, key: EdgeKey): Promise<void> {
    const value = JSON.stringify(v.parse(EdgeKey, key));
    await this.#wrangler(['kv', 'key', 'put', sha256, value, '--metadata', value, ...this.#place]);
  }
}
