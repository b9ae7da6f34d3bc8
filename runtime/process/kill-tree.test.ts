import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { killTree } from './kill-tree.ts';

/**
 * Tells whether a process is running. A process that has ended may remain as a zombie until its parent or init reaps
 * it.
 */
function runs(pid: number): boolean {
  try {
    return !/\) Z [^)]*$/u.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

it.runIf(process.platform === 'linux')('kills a process and those below it', async () => {
  const script = 'sleep 60 & sh -c "sleep 60 & echo \\$!; wait" & echo $!; wait';
  const child = spawn('/bin/sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.on('data', (data) => {
    text += data;
  });
  await expect.poll(() => text.trim().split('\n').length).toBe(2);
  const below = text.trim().split('\n').map(Number);
  expect(below.map(runs)).toEqual([true, true]);
  const exited = once(child, 'exit');
  killTree(child);
  expect(await exited).toEqual([null, 'SIGKILL']);
  await expect.poll(() => below.map(runs)).toEqual([false, false]);
});

it('does nothing to a process that has ended', async () => {
  const child = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await once(child, 'exit');
  killTree(child);
  expect([child.exitCode, child.signalCode]).toEqual([0, null]);
});
