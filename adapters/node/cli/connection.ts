import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import * as v from 'valibot';
import { INTERNAL_MESSAGE } from '../../../handlers/error-response.ts';
import { systemClock } from '../../../lib/clock.ts';
import { AssayError } from '../../../lib/errors.ts';
import { type ApiKey, hashSecret, type KeyStore } from '../../../lib/keys.ts';
import { memoryQuota } from '../../../lib/limits/quota.ts';
import { EdgeHealth, Health } from '../../../lib/schema/status.ts';
import { apiKeyOf, KEY_HELP, type KeyFlags } from '../api-key.ts';
import { COMMAND } from '../command.ts';
import { assayHome, serverConfig } from '../config.ts';
import { CLI_KEY, KeysStore } from '../keys-file.ts';
import { UsageError } from '../usage-error.ts';
import { NoServerError } from './exit-code.ts';
import { serverOption } from './parse-flags.ts';
import { type Connection, type RequestOptions, requestFromFlags, successOf } from './request.ts';

/** Describes the flags of every command that sends requests, to a server or to the app in its own process. */
export interface ConnectionFlags extends KeyFlags {
  url?: string;
  home?: string;
  json?: boolean;
}

/**
 * Adds the flags that `connect` reads to a command and returns it; by default with `--json`. Call it after adding the
 * command's own flags, so that the help lists those first.
 */
export function connectionFlags(command: Command, { json }: { json: boolean } = { json: true }): Command {
  const options = [
    new Option('--url <address>', 'server to talk to (env: ASSAY_URL, default: http://127.0.0.1:8080)'),
    new Option('--api-key <key>', `key for the server; ${KEY_HELP.visible} (env: ASSAY_API_KEY)`),
    new Option('--api-key-file <path>', KEY_HELP.file),
    serverOption('home'),
    ...(json ? [new Option('--json', 'print the response of the server as JSON')] : []),
  ];
  for (const option of options) command.addOption(option.helpGroup('Server and output:'));
  return command;
}

/**
 * Timeout in milliseconds of the request that looks for a running server. Even on a busy machine a server answers
 * earlier. Without a server, the connection is refused at once.
 */
const PROBE_MS = 10_000;

/**
 * Connects to the server that `--url` or `ASSAY_URL` names, or else to one on this machine, at `PORT` or 8080. If none
 * is named, none answers and `alone` is true, connects to the app inside this process (`connectInProcess`). With
 * `always`, does that without looking for a server. With `box`, refuses an edge, because only its boxes have models.
 * `keys`: the keys that the app inside this process accepts (`connectInProcess`).
 *
 * @throws NoServerError if the named server does not answer, or if none runs and `alone` is false
 * @throws UsageError if the address, the home folder or the flags of the key are invalid, or if `box` is true and the
 *   server is an edge
 */
export async function connect(
  flags: ConnectionFlags,
  { alone, always = false, box = false, keys }: { alone: boolean; always?: boolean; box?: boolean; keys?: KeyStore },
): Promise<Connection> {
  const { env } = process;
  if (always) return connectInProcess(assayHome(flags, env), keys);
  const named = flags.url ?? (env.ASSAY_URL || undefined);
  // The base URL of OpenAI's clients ends with /v1, and is often pasted here.
  const url = (named ?? `http://127.0.0.1:${env.PORT || 8080}`).replace(/(\/v1)?\/*$/, '');
  const home = assayHome(flags, env);
  const key = apiKeyOf(flags, env);
  // `localhost:8080` would parse as an address with the scheme `localhost`.
  if (!/^https?:/i.test(url) || !URL.canParse(url)) {
    throw new UsageError(
      named === undefined
        ? `PORT is "${env.PORT}". Set it to a number from 1 to 65535.`
        : `"${named}" is not a URL. Use one such as http://127.0.0.1:8080.`,
    );
  }
  const { username, password } = new URL(url);
  if (username || password)
    throw new UsageError(
      'The address must have no name and password. Give the key with --api-key-file or ASSAY_API_KEY.',
    );
  if (isLoopback(url)) bypassProxy(new URL(url).hostname);
  const kind = await kindOf(url);
  if (box && kind === 'edge') {
    throw new UsageError(
      `${url} is an edge: its boxes have the models. Name one of them with --url ${url}/boxes/<name> (GET ${url}/boxes lists them), and use a key with the admin scope.`,
    );
  }
  if (kind !== null) return serverConnection(url, key, home);
  if (named !== undefined)
    throw new NoServerError(`No Assay server answers at ${url}. Is it running? Start one with: ${COMMAND} serve`);
  if (!alone) throw new NoServerError(`No server is running at ${url}. Start one with: ${COMMAND} serve`);
  return connectInProcess(home, keys);
}

/** Returns what answers at an address: a server or an edge; null if nothing or another program does. */
async function kindOf(url: string): Promise<'server' | 'edge' | null> {
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(PROBE_MS) });
    const health: unknown = await response.json().catch(() => null);
    if (v.is(EdgeHealth, health)) return 'edge';
    // Any other body may be an error of a server, whose responses all have a request id.
    return v.is(Health, health) || response.headers.has('x-request-id') ? 'server' : null;
  } catch {
    return null;
  }
}

function serverConnection(url: string, given: string | undefined, home: string): Connection {
  let key = given;
  const send = (path: string, options: RequestOptions = {}): Promise<Response> =>
    fetch(`${url}${path}`, requestFromFlags(options, key));
  return {
    url,
    async request(path, options) {
      const lost = (cause: unknown): never => {
        options?.signal?.throwIfAborted();
        throw new NoServerError(`The connection to ${url} broke. Is the server still running?`, { cause });
      };
      let response = await send(path, options).catch(lost);
      // Users need no key for their own machine: the command line creates one and stores it in the home folder.
      if (response.status === 401 && given === undefined && options?.key === undefined && isLoopback(url)) {
        key = await localKey(home);
        response = await send(path, options).catch(lost);
        if (response.status === 401) throw new AssayError('invalid_api_key', foreignHome(url, home));
      }
      return successOf(response);
    },
    close: async () => undefined,
  };
}

function foreignHome(url: string, home: string): string {
  return (
    `The server at ${url} requires an API key, and does not keep its keys in ${home}. ` +
    'Name its folder with --home, or give a key with --api-key-file or ASSAY_API_KEY.'
  );
}

/**
 * Excludes a host from the proxy that `HTTP_PROXY` names where `NODE_USE_ENV_PROXY` is set: a server on this machine is
 * never behind one. Node reads the variable again for each request, the one in lower case first.
 */
function bypassProxy(hostname: string): void {
  const { env } = process;
  const name = env.no_proxy === undefined ? 'NO_PROXY' : 'no_proxy';
  env[name] = [env[name], hostname].filter(Boolean).join(',');
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

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

/** Key of the requests of the command's own user. */
const OWNER: ApiKey = { name: 'owner', models: ['*'], scopes: ['admin'] };

/**
 * Creates the server's app inside this process and returns a connection to it, without a port. Imports the app only
 * when called, because the app is most of the program. Closing the connection ends the app's processes.
 *
 * @param home folder with models and keys, which need not exist
 * @param keys keys that requests may name (`RequestOptions.key`), with their rights and quotas. By default all requests
 *   have all rights, because they come from the user of the command
 * @throws UsageError if `home` is anything but a folder, or an `ASSAY_*` variable is invalid
 */
async function connectInProcess(home: string, keys: KeyStore = { find: async () => OWNER }): Promise<Connection> {
  const [{ createApp }, { compose }, { createLog }] = await Promise.all([
    import('../../../handlers/app.ts'),
    import('../compose.ts'),
    import('../log.ts'),
  ]);
  const config = serverConfig({ home }, process.env);
  const usable = await stat(config.home).then(
    (found) => found.isDirectory(),
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );
  if (!usable) throw new UsageError(`${config.home} is not a folder. Choose another with --home or ASSAY_HOME.`);
  const parts = await compose(config, createLog(process.env.ASSAY_DEBUG ? 'debug' : 'silent'));
  const questions = { confidence: config.confidence, abstainBelow: config.abstainBelow };
  const app = createApp({ ...parts, keys, questions, quota: memoryQuota(systemClock) });
  return {
    url: null,
    request: async (path, options = {}) => {
      const request = new Request(`http://localhost${path}`, requestFromFlags(options, 'owner'));
      return successOf(await app.fetch(request)).catch((error: unknown) => {
        throw withoutServer(error);
      });
    },
    close: () => parts.close(),
  };
}

/**
 * Returns another error in place of one that refers to the server's log, because this process keeps no log. Returns any
 * other error unchanged.
 */
export function withoutServer(error: unknown): unknown {
  if (!(error instanceof AssayError) || error.message !== INTERNAL_MESSAGE) return error;
  const message = 'An internal error occurred. Run the command again with ASSAY_DEBUG=1 to see the cause.';
  return new AssayError('internal_error', message, { cause: error });
}
