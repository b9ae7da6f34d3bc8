import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HubServer } from '../hub/hub-server.ts';

const FORM = process.env.ASSAY_TEST_BUILD ? 'dist/adapters/node/bin.js' : 'adapters/node/bin.ts';
/**
 * The program of the servers that tests start: its source, or with `ASSAY_TEST_BUILD` what `npm run build` made, as
 * users run it. An engine process of the build starts in a third of the processor time, since it has no types.
 */
export const SERVER = fileURLToPath(new URL(`../../${FORM}`, import.meta.url));

/** A real `assay serve`, with its engine process and files of its own. */
export interface ServerProcess {
  url: string;
  pid: number;
  base: string;
  /** Status and body of a response. */
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Json }>;
  health(): Promise<Json>;
  /** Sends SIGKILL, as a crash. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: the tests say what they expect of it
export type Json = any;

export const newBase = (): Promise<string> => fs.mkdtemp(join(tmpdir(), 'assay-server-'));

/** Starts a server over the files of `base`, with `hub` as its hub, on any free port. */
export async function startServer(
  hub: HubServer,
  base: string,
  flags: readonly string[] = ['--no-load'],
): Promise<ServerProcess> {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: base,
    HF_ENDPOINT: hub.endpoint,
    HF_HOME: join(base, 'hf'),
    ASSAY_HOME: join(base, 'assay'),
  };
  const args = [SERVER, 'serve', '--port', '0', '--log-level', 'warn', ...flags];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const url = await listeningUrl(child);
  const call: ServerProcess['call'] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  };
  const end = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  return {
    url,
    pid: child.pid ?? 0,
    base,
    call,
    health: async () => (await call('GET', '/health')).body,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}

function listeningUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stdout?.on('data', (chunk) => {
      said += String(chunk);
      const url = /listens on (http:\/\/\S+)/.exec(said)?.[1];
      if (url) resolve(url);
    });
    child.once('exit', (code) => reject(new Error(`the server ended with code ${code}: ${said}`)));
  });
}

/** Returns a process and all its descendants (Linux). */
export async function processTree(pid: number): Promise<number[]> {
  const text = await fs.readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const children = text.split(' ').filter(Boolean).map(Number);
  return [pid, ...(await Promise.all(children.map(processTree))).flat()];
}

/** Returns the media process among a server's descendants, last, and what is around it: a sandbox, a shell (Linux). */
export async function mediaProcesses(pid: number): Promise<number[]> {
  const all = await processTree(pid);
  const commands = await Promise.all(all.map((one) => fs.readFile(`/proc/${one}/cmdline`, 'utf8').catch(() => '')));
  return all.filter((_, i) => commands[i]?.includes('media-child'));
}

/** Returns the resident bytes of a process and, unless told otherwise, all its descendants (Linux). */
export async function residentBytes(pid: number, { children = true } = {}): Promise<number> {
  const sizes = (children ? await processTree(pid) : [pid]).map(async (one) => {
    const status = await fs.readFile(`/proc/${one}/status`, 'utf8').catch(() => '');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
  });
  return (await Promise.all(sizes)).reduce((a, b) => a + b, 0);
}
