import { expect, test } from 'vitest';
import type { ApiKey } from './keys.ts';
import { memoryQuota } from './quota.ts';

const key = (name: string, requestsPerMinute?: number): ApiKey => ({
  name,
  models: ['*'],
  scopes: [],
  ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
});

test('counts each key by itself, and says exactly how long to wait', async () => {
  let now = 1_000_000;
  const quota = memoryQuota({ now: () => now });
  const [two, other, free] = [key('two', 2), key('other', 1), key('free')];
  await quota.take(two);
  await quota.take(two);
  await quota.take(other);
  await expect(quota.take(two)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 30 });
  await expect(quota.take(other)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 60 });
  for (let i = 0; i < 100; i++) await quota.take(free);
  now += 30_000;
  await quota.take(two);
  await expect(quota.take(two)).rejects.toMatchObject({ retryAfterSeconds: 30 });
});
