import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, test } from 'vitest';
import { parseModelId } from '../../lib/model-id.ts';
import { Downloads, FollowedOperation } from './downloads.ts';
import { ModelRegistry } from './model-registry.ts';

const model = parseModelId('a/b');

test('a download that does not end keeps nobody longer than asked', async () => {
  const download = () => new Promise<never>(() => undefined);
  const downloads = new Downloads({ registry: new ModelRegistry(), unfollowedMs: 1000, download });
  void downloads.follow(model, { allowDownload: true }).next();
  await downloads.settled(1);
});

test.each([
  ['downloading', 4, 'a/b is being downloaded now (25 %). Try to load it again when that has finished.'],
  ['verifying', 4, 'a/b is being verified now (25 %). Try to load it again when that has finished.'],
  ['compiling', null, 'a/b is being compiled now. Try to load it again when that has finished.'],
] as const)('says what a busy model is doing: %s', async (stage, total, message) => {
  const registry = new ModelRegistry();
  const downloads = new Downloads({
    registry,
    unfollowedMs: 1000,
    download: (_model, _options, report) => {
      report({ type: 'progress', stage, bytes: 1, total });
      return new Promise(() => undefined);
    },
  });
  await downloads.follow(model, { allowDownload: true }).next();
  expect(() => registry.refuseDuringFileWork(model, 'load')).toThrow(message);
});

/** Starts work that ends with `unfollowed` when its signal aborts, or when the test resolves `done`. */
function work(unfollowedMs: number) {
  const done = Promise.withResolvers<string>();
  const operation = new FollowedOperation<number, string>(async (report, unfollowed) => {
    report(1);
    unfollowed.addEventListener('abort', () => done.resolve('unfollowed'));
    return done.promise;
  }, unfollowedMs);
  return { operation, done };
}

describe('an operation', () => {
  it('is told when its last follower is gone, also one that waits for progress', async () => {
    const { operation } = work(0);
    const leaving = new AbortController();
    const follower = operation.follow(leaving.signal);
    expect(await follower.next()).toEqual({ value: 1, done: false });
    const next = follower.next();
    leaving.abort(new Error('gone'));
    await expect(next).rejects.toThrow('gone');
    expect(await operation.result).toBe('unfollowed');
  });

  it('goes on while another follows, and when one comes in time', async () => {
    const { operation, done } = work(20);
    const [first, second] = [operation.follow(), operation.follow()];
    await first.next();
    await second.next();
    await first.return('');
    await second.return('');
    const third = operation.follow();
    await third.next();
    await sleep(40);
    done.resolve('done');
    expect(await third.next()).toEqual({ value: 'done', done: true });
  });
});
