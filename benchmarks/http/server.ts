import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const BIN = fileURLToPath(new URL('../../adapters/node/bin.ts', import.meta.url));
export const KEY = 'sk-assay-benchmark';

export interface ServerProcess {
  url: string;
  /** Bytes that the server and its engine process hold in memory together; Linux only, elsewhere NaN. */
  memory(): number;
  stop(): Promise<void>;
}

/** `assay serve` as a user starts it, with the starter model loaded and a home of its own. Throws where the model does not load. */
export async function startServer(): Promise<ServerProcess> {
  const home = await mkdtemp(join(tmpdir(), 'assay-benchmark-home-'));
  const flags = ['serve', '--port', '0', '--home', home, '--api-key', KEY, '--log-level', 'error'];
  const child = spawn(process.execPath, [BIN, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
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
      return { url, memory: () => residentBytes(child.pid!), stop };
    }
    if (/ is not loaded/.test(line)) {
      await stop();
      throw new Error(line);
    }
  }
  await stop();
  throw new Error('The server ended before its model was loaded.');
}

/** Of a process and those that it started. */
function residentBytes(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN;
  try {
    const kilobytes = Number(/^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return children.reduce((sum, child) => sum + residentBytes(Number(child)), kilobytes * 1024);
  } catch {
    return 0; // it ended in between
  }
}
