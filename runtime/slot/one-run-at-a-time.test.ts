import { setImmediate as tick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { oneRunAtATime } from './one-run-at-a-time.ts';

/** Creates a wrapped operation whose runs the test ends. */
function controlled() {
  const runs: { end(value: string): void; fail(error: Error): void }[] = [];
  const call = oneRunAtATime(() => new Promise<string>((end, fail) => runs.push({ end, fail })));
  return { runs, call };
}

test('callers during a run share the next one', async () => {
  const { runs, call } = controlled();
  const [first, second, third] = [call(), call(), call()];
  expect(runs).toHaveLength(1);
  runs[0]?.end('a');
  expect(await first).toBe('a');
  await tick();
  expect(runs).toHaveLength(2);
  const fourth = call();
  runs[1]?.end('b');
  expect(await Promise.all([second, third])).toEqual(['b', 'b']);
  await tick();
  runs[2]?.end('c');
  expect(await fourth).toBe('c');
  expect(runs).toHaveLength(3);
});

test('a failed run fails only its own callers', async () => {
  const { runs, call } = controlled();
  const [first, second] = [call(), call()];
  runs[0]?.fail(new Error('no'));
  await expect(first).rejects.toThrow('no');
  await tick();
  runs[1]?.end('b');
  expect(await second).toBe('b');
});

test('a call after the end starts a run at once', async () => {
  const { runs, call } = controlled();
  const first = call();
  runs[0]?.end('a');
  await first;
  await tick();
  void call();
  expect(runs).toHaveLength(2);
});
