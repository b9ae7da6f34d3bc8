import { fork } from 'node:child_process';
import { expect, it } from 'vitest';
import { STARVED_PROGRAM } from './starved-program.fixture.ts';
import { watchSilence } from './watch-silence.ts';

it.runIf(process.platform === 'linux').each([
  ['answers on a starved machine', STARVED_PROGRAM, 'answered'],
  ['computes without end', 'for (;;);', 'silent'],
  ['waits for ever', 'setInterval(() => {}, 1000)', 'silent'],
])('watches a process that %s', async (_, program, expected) => {
  const child = fork('-', { execArgv: ['-e', program] });
  const result = await new Promise((resolve) => {
    const end = watchSilence(child.pid, 1000, () => resolve('silent'));
    child.once('message', () => {
      end();
      resolve('answered');
    });
  });
  child.kill('SIGKILL');
  expect(result).toBe(expected);
});
