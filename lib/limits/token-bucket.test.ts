import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fullAfterMs, type TokenBucket, takeToken } from './token-bucket.ts';

describe('takeToken', () => {
  it.each([
    [1, 60],
    [6, 10],
    [7, 9],
    [60, 1],
    [600, 1],
    [0.5, 120],
  ])('at %d a minute, the request after the last one waits %d s', (perMinute, seconds) => {
    let bucket: TokenBucket | undefined;
    for (let i = 0; i < Math.max(1, perMinute); i++) {
      const taken = takeToken(bucket, perMinute, 0);
      expect(taken.retryAfterSeconds).toBeNull();
      bucket = taken.bucket;
    }
    expect(takeToken(bucket, perMinute, 0).retryAfterSeconds).toBe(seconds);
  });

  it('takes nothing for a refused request', () => {
    const spent = takeToken(undefined, 1, 0).bucket;
    const refused = takeToken(spent, 1, 30_000);
    expect(refused.retryAfterSeconds).toBe(30);
    expect(takeToken(refused.bucket, 1, 59_000).retryAfterSeconds).toBe(1);
    expect(takeToken(refused.bucket, 1, 60_000).retryAfterSeconds).toBeNull();
  });

  it('refills nothing when the clock is set back', () => {
    const spent = takeToken(undefined, 1, 1_000_000).bucket;
    expect(takeToken(spent, 1, 0).retryAfterSeconds).toBe(60);
  });

  it('accepts a request after exactly the reported time, and not a second earlier', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.array(fc.nat(20_000), { maxLength: 50 }),
        (perMinute, pauses) => {
          let now = 1_700_000_000_000;
          let bucket: TokenBucket | undefined;
          for (const pause of pauses) {
            now += pause;
            const taken = takeToken(bucket, perMinute, now);
            bucket = taken.bucket;
            if (taken.retryAfterSeconds === null) continue;
            const waiting = (ms: number) => takeToken(taken.bucket, perMinute, now + ms).retryAfterSeconds;
            expect(waiting(taken.retryAfterSeconds * 1000)).toBeNull();
            if (taken.retryAfterSeconds > 1) expect(waiting((taken.retryAfterSeconds - 1) * 1000)).not.toBeNull();
          }
        },
      ),
      { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) },
    );
  });

  it('never accepts more requests in a span than burst and rate allow', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 120 }),
        fc.array(fc.nat(3_000), { maxLength: 300 }),
        (perMinute, pauses) => {
          let now = 0;
          let passed = 0;
          let bucket: TokenBucket | undefined;
          for (const pause of pauses) {
            now += pause;
            const taken = takeToken(bucket, perMinute, now);
            bucket = taken.bucket;
            if (taken.retryAfterSeconds === null) passed++;
          }
          expect(passed).toBeLessThanOrEqual(perMinute + (now * perMinute) / 60_000 + 0.01);
        },
      ),
      { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) },
    );
  });
});

describe('fullAfterMs', () => {
  it('returns the time until the bucket is full', () => {
    const { bucket } = takeToken(undefined, 30, 0);
    expect(fullAfterMs(bucket, 30)).toBe(2_000);
    expect(takeToken(bucket, 30, 2_000).bucket.tokens).toBe(29);
  });
});
