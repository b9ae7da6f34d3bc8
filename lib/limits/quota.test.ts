import { expect, test } from 'vitest';
import type { ApiKey } from '../keys.ts';
import { memoryQuota } from './quota.ts';

const key = (name: string, requestsPerMinute?: number, tokensPerMinute?: number): ApiKey => ({
  name,
  models: ['*'],
  scopes: [],
  ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
  ...(tokensPerMinute === undefined ? {} : { tokensPerMinute }),
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

test('counts tokens beside requests, and corrects what it estimated', async () => {
  let now = 1_000_000;
  const quota = memoryQuota({ now: () => now });
  const limited = key('limited', undefined, 600);
  await quota.take(limited, { requests: 1, tokens: 500 });
  await expect(quota.take(limited, { tokens: 200 })).rejects.toMatchObject({
    code: 'rate_limited',
    message: expect.stringContaining('tokens per minute'),
    retryAfterSeconds: 10,
  });
  await quota.giveBack?.(limited, { tokens: 100 });
  await quota.take(limited, { tokens: 200 });
  // It used more than estimated: the next one waits until the debt is paid.
  await quota.giveBack?.(limited, { tokens: -300 });
  await expect(quota.take(limited, { tokens: 1 })).rejects.toMatchObject({ retryAfterSeconds: 31 });
  now += 31_000;
  await quota.take(limited, { tokens: 1 });
});

test('a request of more tokens than a minute has is accepted by a full bucket, and the key then pays for it', async () => {
  let now = 1_000_000;
  const quota = memoryQuota({ now: () => now });
  const limited = key('limited', undefined, 600);
  await quota.take(limited, { tokens: 1_200 });
  await expect(quota.take(limited, { tokens: 1_200 })).rejects.toMatchObject({ retryAfterSeconds: 120 });
  now += 120_000;
  await quota.take(limited, { tokens: 1_200 });
});

test('counts what a key asks of some models against limits of their own, beside those of the key', async () => {
  const quota = memoryQuota({ now: () => 1_000_000 });
  const limits = [
    { models: 'acme/*', requestsPerMinute: 2 },
    { models: '*/big', tokensPerMinute: 600 },
  ];
  const limited: ApiKey = { ...key('limited', 9, 5_000), limits };
  const ask = (model: string, tokens: number) => quota.take(limited, { requests: 1, tokens }, model);
  await ask('acme/small', 100);
  await ask('other/small', 100);
  await ask('acme/big', 500);
  await expect(ask('acme/small', 1)).rejects.toMatchObject({
    message: expect.stringContaining('requests per minute for acme/*'),
  });
  await expect(ask('other/big', 500)).rejects.toMatchObject({
    message: expect.stringContaining('tokens per minute for */big'),
  });
  await quota.giveBack?.(limited, { requests: 1, tokens: 500 }, 'acme/big');
  await ask('acme/small', 1);
  // The request was counted before the model was known, so only its tokens count against the key.
  for (let i = 0; i < 9; i++) await quota.take(limited);
  await expect(quota.take(limited)).rejects.toMatchObject({ message: expect.stringContaining('requests per minute.') });
  await expect(ask('else/x', 5_000)).rejects.toMatchObject({ message: expect.stringContaining('tokens per minute.') });
});
