import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const BIN = fileURLToPath(new URL('../../adapters/node/bin.ts', import.meta.url));
export const KEY = 'sk-assay-benchmark';

export interface ServerProcess {
  url: string;
  /** Returns the process ids of the server and of its engine process. */
  pids(): number[];
  /** Returns the current length of the server's log file in bytes. */
  logEnd(): number;
  /** Returns the requests that the server has logged after the position `since` of its log file. */
  logged(since: number): LoggedRequest[];
  stop(): Promise<void>;
}

/**
 * Holds a request from the server's log. `ms` is the time from the arrival of the request's headers to the head of the
 * response, in whole milliseconds.
 */
export interface LoggedRequest {
  path: string;
  status: number;
  ms: number;
}

/**
 * Starts `assay serve` with the starter model, its own home folder and the further flags `more`. Throws if the model
 * does not load.
 */
export async function startServer(more: readonly string[] = []): Promise<ServerProcess> {
  const home = await mkdtemp(join(tmpdir(), 'assay-benchmark-home-'));
  const logFile = join(home, 'log.jsonl');
  const log = openSync(logFile, 'a');
  const flags = ['serve', '--port', '0', '--home', home, '--api-key', KEY, ...more];
  const child = spawn(process.execPath, [BIN, ...flags], {
    stdio: ['ignore', 'pipe', log],
  }) as ChildProcessByStdio<null, Readable, null>;
  closeSync(log);
  const stop = async () => {
    const ended = child.exitCode === null ? once(child, 'exit') : null;
    child.kill('SIGTERM');
    await ended;
    await rm(home, { recursive: true, force: true });
  };
  let url = '';
  for await (const line of createInterface(child.stdout)) {
    url ||= /listens on (\S+)/.exec(line)?.[1] ?? '';
    if (/ is ready on /.test(line)) {
      child.stdout.resume();
      return {
        url,
        pids: () => [child.pid!, ...descendantsOf(child.pid!)],
        logEnd: () => statSync(logFile).size,
        logged: (since) => requestsIn(readFileSync(logFile).subarray(since).toString()),
        stop,
      };
    }
    if (/ is not loaded/.test(line)) {
      await stop();
      throw new Error(line);
    }
  }
  const said = readFileSync(logFile, 'utf8');
  await stop();
  throw new Error(`The server ended before its model was loaded.\n${said}`);
}

function requestsIn(log: string): LoggedRequest[] {
  return log
    .split('\n')
    .filter((line) => line.includes('"msg":"request"'))
    .map((line) => JSON.parse(line) as LoggedRequest);
}

/** Returns the ids of all descendants of a process. The engine process is a descendant of processes that isolate it. */
function descendantsOf(pid: number): number[] {
  if (process.platform !== 'linux') return [];
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}
