import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { killTree } from './kill-tree.ts';
import { processorMs, residentBytes } from './process-tree.ts';

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
