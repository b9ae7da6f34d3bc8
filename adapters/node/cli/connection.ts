import { type Command, Option } from 'commander';
import * as v from 'valibot';
import { AssayError } from '../../../lib/errors.ts';
import type { KeyStore } from '../../../lib/keys.ts';
import { EdgeHealth, Health } from '../../../lib/schema/status.ts';
import { apiKeyOf, KEY_HELP, type KeyFlags } from '../api-key.ts';
import { COMMAND } from '../command.ts';
import { assayHome } from '../config.ts';
import { UsageError } from '../usage-error.ts';
import { connectInProcess } from './connect-in-process.ts';
import { NoServerError } from './exit-code.ts';
import { localKey } from './local-key.ts';
import { type Connection, type RequestOptions, requestOf, successOf } from './request.ts';

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
  const add = (flags: string, description: string) =>
    command.addOption(new Option(flags, description).helpGroup('Server and output:'));
  add('--url <address>', 'server to talk to (env: ASSAY_URL, default: http://127.0.0.1:8080)');
  add('--api-key <key>', `key for the server; ${KEY_HELP.visible} (env: ASSAY_API_KEY)`);
  add('--api-key-file <path>', KEY_HELP.file);
  add('--home <folder>', 'folder with models and keys (env: ASSAY_HOME, default: ~/.assay)');
  if (json) add('--json', 'print the response of the server as JSON');
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
    fetch(`${url}${path}`, requestOf(options, key));
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
