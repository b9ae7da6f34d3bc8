import { fork } from 'node:child_process';

/** What a try to run something on a provider gave. */
export type ProbeResult = { works: true } | { works: false; reason: string };

const PROBE = new URL(`./probe-child${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
const LIMIT_MS = 30_000;

/**
 * Runs a two by two product on one execution provider, with no way to fall back to the CPU. In a process of its own, because a
 * driver that is half there may end the process that loads it.
 */
export function probeProvider(provider: string): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const child = fork(PROBE, [provider], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'], execArgv: [] });
    const timer = setTimeout(() => end({ works: false, reason: 'it did not answer for 30 s' }), LIMIT_MS);
    const end = (result: ProbeResult): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      resolve(result);
    };
    child.once('message', (message) => end(message as ProbeResult));
    child.once('error', (error) => end({ works: false, reason: error.message }));
    child.once('exit', (code, signal) =>
      end({ works: false, reason: `the driver ended the process (${signal ?? code})` }),
    );
  });
}
