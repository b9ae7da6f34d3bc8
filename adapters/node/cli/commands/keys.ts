import { execFile } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';
import { type Command, InvalidArgumentError, Option } from 'commander';
import * as v from 'valibot';
import { PRIORITIES, type Priority } from '../../../../lib/backend.ts';
import { hashSecret, type KeyLimit, QUOTA_UNITS, quotaOf } from '../../../../lib/keys.ts';
import { asModelId } from '../../../../lib/model-id.ts';
import { COMMAND } from '../../command.ts';
import { assayHome } from '../../config.ts';
import { type FiledKey, KeysStore, newSecret, StoredKeySchema } from '../../keys-file.ts';
import { UsageError } from '../../usage-error.ts';
import { localFlags, wholeNumber } from '../parse-flags.ts';
import { screen, table } from '../screen.ts';

const run = promisify(execFile);

/** Runs the wrangler that is installed in the current folder, without sending metrics. */
const wrangler: Wrangler = async (args) => {
  try {
    const { stdout } = await run('npx', ['--no-install', 'wrangler', ...args], {
      env: { ...process.env, WRANGLER_SEND_METRICS: 'false' },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  } catch (cause) {
    // Wrangler writes colors even into a pipe.
    const said =
      cause instanceof Error && 'stderr' in cause ? stripVTControlCharacters(String(cause.stderr)).trim() : '';
    throw new Error(
      `wrangler failed. Run this in the folder with wrangler.toml, after npm install and npx wrangler login.\n${said}`,
      { cause },
    );
  }
};

interface KeyFlags {
  home?: string;
  /**
   * Selects the keys of the edge: the name of an environment in wrangler.toml, or `true` for the top-level
   * one.
   */
  edge?: string | true;
  json?: boolean;
}

interface AddFlags extends KeyFlags {
  models: string[];
  requestsPerMinute: readonly LimitFlag[];
  tokensPerMinute: readonly LimitFlag[];
  priority: Priority;
  shareCache: boolean;
  admin: boolean;
}

/** Adds the command `assay keys`. */
export function addKeys(program: Command): void {
  const keys = program.command('keys').description('Make, list and revoke API keys.').addHelpText('after', KEYS_HELP);
  const storeOf = (flags: KeyFlags): KeysStore | EdgeKeys => {
    if (flags.edge === undefined) return new KeysStore(assayHome(flags, process.env));
    return new EdgeKeys(wrangler, { environment: flags.edge === true ? '' : flags.edge });
  };
  const keyFlags = (command: Command): Command =>
    localFlags(command).option(
      '--edge [environment]',
      'manage the keys of the edge on Cloudflare, with wrangler and the wrangler.toml in this folder',
    );

  keyFlags(keys.command('add').alias('create'))
    .description('Make a key. It is shown only once, because only its hash is stored.')
    .argument('<name>', 'name of the key, in logs and for keys revoke', keyName)
    .option('--models <pattern...>', 'models that the key may use; * stands for any characters', ['*'])
    .option(
      '--requests-per-minute <[models=]number>',
      'most requests per minute (default: no limit); repeat it for some models: acme/*=10',
      limitFlag,
      [],
    )
    .option(
      '--tokens-per-minute <[models=]number>',
      'most tokens per minute, of prompts and answers together (default: no limit); repeat it for some models',
      limitFlag,
      [],
    )
    .addOption(
      new Option('--priority <priority>', 'priority of its requests; batch requests yield to interactive ones')
        .choices(PRIORITIES)
        .default('interactive'),
    )
    .option(
      '--share-cache',
      "reuse cached prompts of all keys with this flag; their holders can learn the beginnings of one another's texts",
      false,
    )
    .option(
      '--admin',
      'allow the key to load, unload, download and delete models, from other machines and on the boxes of an edge',
      false,
    )
    .action(async (name: string, flags: AddFlags) => {
      const { models, requestsPerMinute, tokensPerMinute, priority, shareCache, admin } = flags;
      const limits = limitsIn(requestsPerMinute, tokensPerMinute);
      const patterns = limits.flatMap((limit) => (limit.models === '' ? [] : [limit.models]));
      const useless = [...models, ...patterns].find((pattern) => !isUseful(pattern));
      if (useless !== undefined) {
        throw new UsageError(
          `${models.includes(useless) ? '--models' : 'The limit for'} ${useless} matches no model id. Use an id such as assay/starter, or a pattern such as assay/*${models.includes(useless) ? '; separate several by spaces' : ''}.`,
        );
      }
      const key = await storeOf(flags).create({
        name,
        models,
        priority,
        scopes: admin ? ['admin'] : [],
        ...limitsOfKey(limits),
        ...(shareCache ? { sharesCache: true } : {}),
      });
      if (flags.json) return screen.json({ name, key });
      // Only the key is on standard output, where a script reads it.
      screen.line(key);
      screen.note(`This is the key ${name}. Keep it: it is shown only once, because only its hash is stored.`);
    });

  keyFlags(keys.command('list').alias('ls'))
    .description('List the keys by name.')
    .action(async (flags: KeyFlags) => {
      const all = await storeOf(flags).list();
      if (flags.json) return screen.json(all.map(({ sha256: _, ...shown }) => shown));
      if (all.length === 0) return screen.line(`There are no keys. Make one with: ${COMMAND} keys add my-key`);
      const rows = all.map((key) => {
        const { name, models, priority = 'interactive', scopes, created } = key;
        const limits = [{ ...key, models: '' }, ...(key.limits ?? [])].flatMap(limitText);
        const limit = limits.length > 0 ? limits.join('; ') : 'no limit';
        return [name, created.slice(0, 10), models.join(' '), limit, priority, scopes.join(' ')];
      });
      screen.line(table([['NAME', 'MADE', 'MODELS', 'LIMIT', 'PRIORITY', 'SCOPES'], ...rows]));
    });

  keyFlags(keys.command('revoke').alias('rm'))
    .description('Revoke a key. A server refuses it at once, an edge within 90 seconds.')
    .argument('<name>')
    .action(async (name: string, flags: KeyFlags) => {
      await storeOf(flags).revoke(name);
      if (flags.json) screen.json({ name, revoked: true });
      else screen.line(`The key ${name} is revoked.`);
    });
}

const KEYS_HELP = `
Keys are kept as hashes in keys.json of the home folder; a running server applies a change at once. --edge manages
the keys of a Cloudflare Workers edge; run it in the folder with wrangler.toml.

Examples:
  $ assay keys add web-shop --models 'assay/*' --requests-per-minute 60
  $ assay keys add nightly-report --priority batch --tokens-per-minute 'acme/*=100000'
  $ assay keys list
  $ assay keys revoke web-shop
  $ assay keys add web-shop --edge staging`;

/** Holds one value of `--requests-per-minute` or `--tokens-per-minute`. */
interface LimitFlag {
  /** Pattern of the models that it limits; empty for all together. */
  models: string;
  most: number;
}

function limitFlag(text: string, earlier: readonly LimitFlag[]): LimitFlag[] {
  const equals = text.lastIndexOf('=');
  const models = text.slice(0, Math.max(0, equals));
  if (earlier.some((one) => one.models === models) || equals === 0)
    throw new InvalidArgumentError(`State one limit for ${models === '' ? 'all models' : models}.`);
  return [...earlier, { models, most: wholeNumber(1, 999_999_999)(text.slice(equals + 1)) }];
}

/** Returns the limits that two flags state, one for each pattern of models. */
function limitsIn(requests: readonly LimitFlag[], tokens: readonly LimitFlag[]): KeyLimit[] {
  return [...new Set([...requests, ...tokens].map(({ models }) => models))].map((models) => {
    const [most, mostTokens] = [requests, tokens].map((all) => all.find((one) => one.models === models)?.most);
    return {
      models,
      ...(most === undefined ? {} : { requestsPerMinute: most }),
      ...(mostTokens === undefined ? {} : { tokensPerMinute: mostTokens }),
    };
  });
}

/** Returns the members of a key with these limits. */
function limitsOfKey(all: readonly KeyLimit[]): Pick<FiledKey, 'requestsPerMinute' | 'tokensPerMinute' | 'limits'> {
  const { models: _, ...whole } = all.find(({ models }) => models === '') ?? { models: '' };
  const limits = all.filter(({ models }) => models !== '');
  return { ...whole, ...(limits.length > 0 ? { limits } : {}) };
}

function limitText(limit: KeyLimit): string[] {
  const parts = QUOTA_UNITS.flatMap((unit) => {
    const most = quotaOf(limit, unit);
    return most === undefined ? [] : [`${most} ${unit}`];
  });
  return parts.length === 0 ? [] : [`${limit.models === '' ? '' : `${limit.models}: `}${parts.join(', ')} a minute`];
}

/** Tells whether a pattern may match a model id: after each `*` is replaced, only characters of ids are left. */
function isUseful(pattern: string): boolean {
  return pattern.includes('*') ? /^[\w./*-]+$/.test(pattern) : asModelId(pattern) !== null;
}

function keyName(text: string): string {
  if (/^[\w.-]{1,64}$/.test(text)) return text;
  throw new InvalidArgumentError('Use 1 to 64 of A-Z a-z 0-9 . _ -');
}

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
