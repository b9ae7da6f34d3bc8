import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { HEAP_FLAGS, residentBytes } from './child-memory.ts';

const onLinux = process.platform === 'linux';

it('gives Node flags that bound its heap', () => {
  const limit = 'process.stdout.write(String(require("v8").getHeapStatistics().heap_size_limit))';
  const bytes = Number(execFileSync(process.execPath, [...HEAP_FLAGS, '-e', limit]));
  expect(bytes / 2 ** 20).toBeGreaterThanOrEqual(1024);
  expect(bytes / 2 ** 20).toBeLessThan(1024 + 4 * 16);
});

it.runIf(onLinux)('counts the memory of child processes', async () => {
  const before = (await residentBytes(process.pid)) ?? 0;
  const child = fork('-', { execArgv: ['-e', 'process.send("ready"); setInterval(() => {}, 1000)'] });
  await once(child, 'message');
  const own = (await residentBytes(child.pid)) ?? 0;
  expect(own).toBeGreaterThan(10 * 2 ** 20);
  expect(await residentBytes(process.pid)).toBeGreaterThan(before + own / 2);
  child.kill();
});

it.each([undefined, 2 ** 22 + 1])('returns null for the missing process %s', async (pid) => {
  expect(await residentBytes(pid)).toBeNull();
});
