import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { killTree, processorMs, residentBytes } from './kill-tree.ts';

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

const onLinux = process.platform === 'linux';

it.runIf(onLinux)('counts the memory of child processes', async () => {
  const before = (await residentBytes(process.pid)) ?? 0;
  const child = fork('-', { execArgv: ['-e', 'process.send("ready"); setInterval(() => {}, 1000)'] });
  await once(child, 'message');
  const own = (await residentBytes(child.pid)) ?? 0;
  expect(own).toBeGreaterThan(10 * 2 ** 20);
  expect(await residentBytes(process.pid)).toBeGreaterThan(before + own / 2);
  child.kill();
});

it.runIf(onLinux)('counts the processor time of child processes', async () => {
  const busy = 'for (let i = 0; i < 3e8; i++); process.send(process.cpuUsage().user); setInterval(() => {}, 1000)';
  const start = `const child = require("child_process").fork("-", { execArgv: ["-e", ${JSON.stringify(busy)}] })`;
  const parent = `${start}; child.on("message", (used) => process.send([used, process.cpuUsage().user]))`;
  const tree = fork('-', { execArgv: ['-e', parent] });
  const [[below, own]] = await once(tree, 'message');
  const both = (below + own) / 1000;
  // Each of the two figures is in steps of 10 ms.
  expect(await processorMs(tree.pid)).toBeGreaterThanOrEqual(both - 20);
  killTree(tree);
});

it.each([undefined, 2 ** 22 + 1])('returns null for the missing process %s', async (pid) => {
  expect(await residentBytes(pid)).toBeNull();
  expect(await processorMs(pid)).toBeNull();
});
