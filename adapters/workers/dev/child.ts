import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface Child {
  /**
   * Resolves to the first match of `line` in the first 200 lines of the process, including those printed already.
   * Rejects if the process ends without a match.
   */
  waitForLine(line: RegExp): Promise<RegExpMatchArray>;
  /** Resolves to the exit code when the process ends; to 1 if a signal ended it. */
  ended: Promise<number>;
  /** Ends the process with SIGTERM, or with SIGKILL if it still runs after five seconds. */
  stop(): Promise<void>;
}

/** Number of lines, from the first on, that are kept for `waitForLine` to search. */
const MOST_LINES = 200;

/**
 * Starts Node with `args` and prints its output, each line after `name` in brackets. `env` is its whole environment.
 */
export function startChild(name: string, args: readonly string[], env: NodeJS.ProcessEnv): Child {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? 1)));
  const lines: string[] = [];
  let stopping = false;
  const newLine = new EventTarget();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', (line) => {
      // While stopping, messages that wrangler's own child processes print when they end are dropped; they mean
      // nothing.
      const shown = line.trim() !== '' && !(stopping && stream === child.stderr);
      if (shown) console.log(`[${name}] ${line}`);
      if (lines.length < MOST_LINES) lines.push(line);
      newLine.dispatchEvent(new Event('line'));
    });
  }
  const waitForLine = (wanted: RegExp) =>
    new Promise<RegExpMatchArray>((resolve, reject) => {
      const look = () => {
        const match = lines.map((line) => wanted.exec(line)).find((found) => found !== null);
        if (match) resolve(match);
      };
      newLine.addEventListener('line', look);
      look();
      void ended.then((code) => reject(new Error(`${name} ended with status ${code} too early; see its lines above.`)));
    });
  return {
    waitForLine,
    ended,
    stop() {
      stopping = true;
      return stop(child, ended);
    },
  };
}

async function stop(child: ChildProcess, ended: Promise<number>): Promise<void> {
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), 5_000);
  await ended;
  clearTimeout(late);
}
