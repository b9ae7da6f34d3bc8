import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { PRIORITIES } from '../../lib/backend.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { hashSecret, KeyLimits, type StoredKey } from '../../lib/keys.ts';
import { whole } from '../../lib/schema/values.ts';
import { type HeldLock, lock } from '../../runtime/store/lock.ts';
import { COMMAND } from './command.ts';
import { UsageError } from './usage-error.ts';

/** Describes a stored API key, in keys.json and in the KV of an edge (`cli/commands/keys.ts`). */
export const StoredKeySchema = v.object({
  name: v.pipe(v.string(), v.regex(/^[\w.-]{1,64}$/)),
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  models: v.pipe(v.array(v.string()), v.minLength(1)),
  requestsPerMinute: v.exactOptional(whole(1)),
  tokensPerMinute: v.exactOptional(whole(1)),
  limits: KeyLimits,
  sharesCache: v.exactOptional(v.boolean()),
  priority: v.exactOptional(v.picklist(PRIORITIES)),
  scopes: v.array(v.literal('admin')),
  /** Time of creation (ISO 8601). */
  created: v.pipe(v.string(), v.isoTimestamp()),
});

/** Name of the key that the command line creates for its own requests. */
export const CLI_KEY = 'cli';

const KeysFile = v.object({ version: v.literal(1), keys: v.array(StoredKeySchema) });

export type FiledKey = v.InferOutput<typeof StoredKeySchema>;

/**
 * Manages the API keys of a home folder, in `keys.json`. The file contains the keys' hashes, not the keys, and only its
 * owner can read it. Every method throws `UsageError` if the file cannot be read, written or locked, and `Error` if its
 * content is damaged.
 */
export class KeysStore {
  readonly file: string;
  readonly #clock: Clock;
  readonly #lockMs: number;
  #read: { stamp: string; keys: readonly FiledKey[] } = { stamp: '', keys: [] };

  /** `lockMs`: milliseconds that a change waits for the lock of the file. */
  constructor(home: string, clock: Clock = systemClock, lockMs = 10_000) {
    this.file = join(home, 'keys.json');
    this.#clock = clock;
    this.#lockMs = lockMs;
  }

  /** Returns who else may read or write the file or its folder, in words for the operator; null if nobody may. */
  exposure(): string | null {
    if (process.platform === 'win32') return null;
    const mode = (path: string) => statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
    if (mode(dirname(this.file)) & 0o022) return `Other accounts can write to ${dirname(this.file)}: chmod go-w it.`;
    if (mode(this.file) & 0o077) return `Other accounts can read ${this.file}: chmod 600 it.`;
    return null;
  }

  /**
   * Returns all keys; none if there is no file. Ignores members of a newer version. Reads the file again only after it
   * has changed.
   */
  async list(): Promise<readonly FiledKey[]> {
    const stamp = this.#stamp();
    if (stamp !== this.#read.stamp) this.#read = { stamp, keys: await this.#parse() };
    return this.#read.keys;
  }

  /** Creates a key and returns its secret, which is not stored. Throws `UsageError` if another key has this name. */
  async create(key: Omit<FiledKey, 'sha256' | 'created'>): Promise<string> {
    const secret = newSecret();
    const created = new Date(this.#clock.now()).toISOString();
    const filed = v.parse(StoredKeySchema, { ...key, sha256: await hashSecret(secret), created });
    await this.#change((keys) => {
      if (keys.some((one) => one.name === key.name)) {
        throw new UsageError(
          `There is a key named ${key.name} already. Choose another name, or revoke that one first.`,
        );
      }
      return [...keys, filed];
    });
    return secret;
  }

  /**
   * Revokes a key. A running server refuses it from the next request on. Throws `UsageError` if no key has this name.
   */
  async revoke(name: string): Promise<void> {
    await this.#change((keys) => {
      const left = keys.filter((key) => key.name !== name);
      if (left.length === keys.length)
        throw new UsageError(`There is no key named ${name}. List the keys: ${COMMAND} keys list`);
      return left;
    });
  }

  /**
   * Runs `work`, which may change keys, while no other process runs work with the same name in this home. Returns its
   * result.
   */
  async alone<T>(name: string, work: () => Promise<T>): Promise<T> {
    const held = await this.#lock(join(dirname(this.file), `${name}.lock`));
    try {
      return await work();
    } finally {
      held.release();
    }
  }

  #stamp(): string {
    try {
      return stampOf(this.file);
    } catch (error) {
      // The cast is safe: `statSync` throws only system errors.
      return this.#unusable(error as NodeJS.ErrnoException);
    }
  }

  #unusable = (error: NodeJS.ErrnoException): never => {
    throw new UsageError(
      `${this.file} cannot be used (${error.code}). Choose another folder with --home or ASSAY_HOME.`,
      {
        cause: error,
      },
    );
  };

  async #parse(): Promise<readonly FiledKey[]> {
    this.#stamp();
    const text = await readFile(this.file, 'utf8').catch(emptyWhereMissing).catch(this.#unusable);
    if (text === null) return [];
    try {
      return v.parse(KeysFile, JSON.parse(text)).keys;
    } catch (cause) {
      throw new Error(`${this.file} is damaged. Move it away, then make new keys with: ${COMMAND} keys add`, { cause });
    }
  }

  /**
   * Replaces the keys by `change(keys)`. A lock file keeps other processes from changing them at the same time. Readers
   * always see a complete file, because the new file is written beside the old one and then renamed.
   */
  async #change(change: (keys: readonly FiledKey[]) => FiledKey[]): Promise<void> {
    const held = await this.#lock(`${this.file}.lock`);
    const next = `${this.file}.${process.pid}.tmp`;
    try {
      const keys = change(await this.#parse());
      await writeWhole(next, `${JSON.stringify({ version: 1, keys }, null, 2)}\n`).catch(this.#unusable);
      await rename(next, this.file).catch(this.#unusable);
    } finally {
      await rm(next, { force: true });
      held.release();
    }
  }

  async #lock(file: string): Promise<HeldLock> {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 }).catch(this.#unusable);
    const timeout = AbortSignal.timeout(this.#lockMs);
    return lock(file, this.#clock, timeout).catch((cause) => {
      if (cause !== timeout.reason) return this.#unusable(cause);
      throw new UsageError(
        `${this.file} could not be locked within ${this.#lockMs / 1000} seconds. If another process is changing keys, ` +
          'wait until it has ended; otherwise choose another folder with --home or ASSAY_HOME.',
        { cause },
      );
    });
  }
}

async function writeWhole(path: string, text: string): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
    await file.chmod(0o600);
  } finally {
    await file.close();
  }
}

/**
 * Returns a value that changes whenever the file changes: its inode, time of modification and size. Every request calls
 * this function. It is synchronous because the call takes microseconds, while an asynchronous one would occupy a thread
 * of Node's pool that competes with the model's threads.
 */
function stampOf(file: string): string {
  const seen = statSync(file, { bigint: true, throwIfNoEntry: false });
  // Reading a pipe would never end.
  if (seen?.isFile() === false) throw Object.assign(new Error(`${file} is no file`), { code: 'it is no file' });
  return seen === undefined ? 'none' : `${seen.ino}-${seen.mtimeNs}-${seen.size}`;
}

function emptyWhereMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}

/** Returns a new secret: `sk-assay-` and 192 random bits in base64url. */
export function newSecret(): string {
  return `sk-assay-${randomBytes(24).toString('base64url')}`;
}

/** Returns the stored form of a key that a flag, a variable or a key file gives. Such a key has all rights. */
export async function givenKey(secret: string): Promise<StoredKey> {
  return { name: 'api-key', sha256: await hashSecret(secret), models: ['*'], scopes: ['admin'] };
}
