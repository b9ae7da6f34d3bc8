import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { HubServer } from '../hub/hub-server.ts';
import { mediaProcesses, processTree, SERVER } from '../model-server/server.ts';

const KEY = 'chaos';

/** A server process under test. */
export interface Target {
  url: string;
  pid: number;
  key: string;
  headers: { authorization: string };
  /** Makes a further key, and returns its secret. */
  addKey(name: string): string;
  /** Processes that the server started; `models`: of the engine and of compiles, `media`: of media. */
  children(of?: 'models' | 'media'): Promise<number[]>;
  /** Gauges of `/metrics`. */
  gauges(): Promise<Map<string, number>>;
  /** Stops the server in order, and returns its exit code. */
  stop(): Promise<number | null>;
  kill(): void;
}

export interface TargetOptions {
  hub: HubServer;
  base: string;
  descriptors: number | null;
  logRead: boolean;
  env: Record<string, string>;
}

/** Starts `assay serve` over the files of `base`, with the starter loaded. */
export async function startTarget({ hub, base, descriptors, logRead, env }: TargetOptions): Promise<Target> {
  const program = [process.execPath, SERVER, 'serve', '--port', '0', '--log-level', 'info', '--api-key', KEY];
  const limit = descriptors === null ? '' : `ulimit -n ${descriptors}; `;
  const environment = {
    PATH: process.env.PATH ?? '',
    HOME: base,
    HF_ENDPOINT: hub.endpoint,
    HF_HOME: join(base, 'hf'),
    ASSAY_HOME: join(base, 'assay'),
    ...env,
  };
  const child = spawn('bash', ['-c', `${limit}exec "$@"`, 'bash', ...program], {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // Unread, the pipe fills up; the server must not wait for it.
  if (logRead) child.stderr?.resume();
  const url = await ready(child).catch((error) => {
    child.kill('SIGKILL');
    throw error;
  });
  const pid = child.pid ?? 0;
  const headers = { authorization: `Bearer ${KEY}` };
  return {
    url,
    pid,
    key: KEY,
    headers,
    addKey: (name) =>
      /sk-assay-\S+/.exec(
        execFileSync(process.execPath, [SERVER, 'keys', 'add', name], { env: environment }).toString(),
      )![0],
    async children(of) {
      const media = new Set(await mediaProcesses(pid));
      const all = (await processTree(pid)).slice(1);
      return all.filter((one) => of === undefined || media.has(one) === (of === 'media'));
    },
    async gauges() {
      const response = await fetch(`${url}/metrics`, { headers: { ...headers, connection: 'close' } });
      return gaugesIn(await response.text());
    },
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        child.stderr?.resume();
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      return child.exitCode;
    },
    kill: () => void child.kill('SIGKILL'),
  };
}

/** Resolves to the address when the first model has been loaded. */
function ready(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stdout?.on('data', (chunk) => {
      said += String(chunk);
      const url = /listens on (http:\/\/\S+)/.exec(said)?.[1];
      if (url && / is ready on /.test(said)) resolve(url);
      else if (/ is not loaded\. /.test(said)) reject(new Error(said));
    });
    child.once('exit', (code) => reject(new Error(`the server ended with code ${code}: ${said}`)));
  });
}

/** Returns the gauges by their name and labels, summed over the models. */
function gaugesIn(text: string): Map<string, number> {
  const gauges = new Map<string, number>();
  for (const [, name = '', value] of text.matchAll(/^([a-z_]+(?:\{[^}]*\})?) (\S+)$/gm)) {
    const key = name.replace(/,?model="[^"]*"/, '').replace('{}', '');
    gauges.set(key, (gauges.get(key) ?? 0) + Number(value));
  }
  return gauges;
}
