import { describe, expect, it } from 'vitest';
import { ChangeSignal } from './change-signal.ts';

describe('a wait for a change', () => {
  it('tests its condition again at each change', async () => {
    const signal = new ChangeSignal();
    let left = 3;
    let done = false;
    const waiting = signal
      .waitWhile(() => left > 0)
      .then(() => {
        done = true;
      });
    for (; left > 0; left--) {
      signal.send();
      await Promise.resolve();
      expect(done).toBe(false);
    }
    signal.send();
    await waiting;
    expect(done).toBe(true);
  });

  it('wakes all callers', async () => {
    const signal = new ChangeSignal();
    const all = Promise.all([signal.next, signal.next, signal.next]);
    signal.send();
    await expect(all).resolves.toHaveLength(3);
  });

  const aborted = AbortSignal.abort();
  it.each([
    ['returns at once if the condition is false', () => false, {}],
    ['ends after the timeout', () => true, { timeoutMs: 1 }],
    ['ends if the signal has aborted', () => true, { signal: aborted }],
    ['ends when the signal aborts', () => true, { signal: AbortSignal.timeout(1) }],
  ])('%s', async (_, condition, options) => {
    await expect(new ChangeSignal().waitWhile(condition, options)).resolves.toBeUndefined();
  });
});
