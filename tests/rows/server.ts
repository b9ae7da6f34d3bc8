import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const SERVER = fileURLToPath(new URL('hashing-server.ts', import.meta.url));

/** Key that the server takes. */
export const KEY = 'key-of-the-test';

/** Starts a hashing server in a process of its own; `answers(n)` resolves after n further answers. */
export async function startServer(port: string, home: string) {
  const child = spawn(process.execPath, [SERVER, port, home], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let count = 0;
  let changed = Promise.withResolvers<void>();
  const url = Promise.withResolvers<string>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    url.resolve(text.split('\n')[0] ?? '');
    count += text.replace(/http\S+/, '').split('.').length - 1;
    changed.resolve();
    changed = Promise.withResolvers();
  });
  const address = await url.promise;
  return {
    child,
    url: address,
    async answers(n: number) {
      for (const until = count + n; count < until; ) await changed.promise;
    },
  };
}
