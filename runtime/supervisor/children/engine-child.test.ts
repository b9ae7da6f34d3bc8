import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { HEAP_FLAGS } from './engine-child.ts';

it('gives Node flags that bound its heap', () => {
  const limit = 'process.stdout.write(String(require("v8").getHeapStatistics().heap_size_limit))';
  const bytes = Number(execFileSync(process.execPath, [...HEAP_FLAGS, '-e', limit]));
  expect(bytes / 2 ** 20).toBeGreaterThanOrEqual(1024);
  expect(bytes / 2 ** 20).toBeLessThan(1024 + 4 * 16);
});
