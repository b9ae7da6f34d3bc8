import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface Child {
  /** The first match of `ready` in its output; rejects when it ends before. */
  ready: Promise<RegExpMatchArray>;
  ended: Promise<number>;
  /** SIGTERM, then SIGKILL when it has not gone in five seconds. */
  stop(): Promise<void>;
}

/** A process whose lines are shown under a name. */
export function startChild(
  name: string,
  args: readonly string[],
  { env, ready }: { env: NodeJS.ProcessEnv; ready: RegExp },
): Child {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? 1)));
  const found = new Promise<RegExpMatchArray>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        if (line.trim() !== '') console.log(`[${name}] ${line}`);
        const match = ready.exec(line);
        if (match) resolve(match);
      });
    }
    void ended.then((code) =>
      reject(new Error(`${name} ended with status ${code} before it was ready; see its lines above.`)),
    );
  });
  found.catch(() => {});
  return { ready: found, ended, stop: () => stop(child, ended) };
}

async function stop(child: ChildProcess, ended: Promise<number>): Promise<void> {
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), 5_000);
  await ended;
  clearTimeout(late);
}
