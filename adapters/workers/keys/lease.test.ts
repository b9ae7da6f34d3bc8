import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type TokenBucket, takeToken } from '../../../lib/token-bucket.ts';
import { LEASE_MS, Lease } from './lease.ts';
import { LendingBucket } from './lending-bucket.ts';

/** An isolate that counts how often it asks. */
function isolate(bucket: LendingBucket, requestsPerMinute: number) {
  const lease = new Lease();
  let asked = 0;
  return {
    asked: () => asked,
    /** Seconds to wait, or null where the request passes. */
    take(now: number): number | null {
      if (lease.use(now)) return null;
      asked++;
      const { retryAfterSeconds, ahead } = bucket.take(requestsPerMinute, lease.wanted(now), now);
      lease.hold(ahead, now);
      return retryAfterSeconds;
    },
  };
}

describe('a lease', () => {
  it('spares a busy key nearly every question, and one that is used now and then none', () => {
    const busy = isolate(new LendingBucket(), 60_000);
    for (let i = 0; i < 1_000; i++) expect(busy.take(i * 5)).toBeNull();
    expect(busy.asked()).toBeLessThan(40);
    const calm = isolate(new LendingBucket(), 60_000);
    for (let i = 0; i < 20; i++) expect(calm.take(i * 3 * LEASE_MS)).toBeNull();
    expect(calm.asked()).toBe(20);
  });

  it('ends: what is left then is not used', () => {
    const lease = new Lease();
    lease.hold(2, 0);
    expect([lease.use(LEASE_MS - 1), lease.use(LEASE_MS)]).toEqual([true, false]);
  });

  it('keeps the larger of two lots that cross', () => {
    const lease = new Lease();
    lease.hold(2, 10);
    lease.hold(0, 11);
    expect([lease.use(12), lease.use(12), lease.use(12)]).toEqual([true, true, false]);
  });

  it.each([3, 59])(
    'is never given to a key with %d requests a minute: each of them is counted',
    (requestsPerMinute) => {
      const bucket = new LendingBucket();
      const isolates = [isolate(bucket, requestsPerMinute), isolate(bucket, requestsPerMinute)];
      const passed = Array.from({ length: 100 }, (_, i) => isolates[i % 2]!.take(i)).filter((wait) => wait === null);
      expect(passed).toHaveLength(requestsPerMinute);
    },
  );

  it('is given while more than half of the bucket is left, up to a second of the limit', () => {
    const bucket = new LendingBucket();
    expect(bucket.take(600, 1_000, 0)).toEqual({ retryAfterSeconds: null, ahead: 10 });
    for (let i = 0; i < 28; i++) bucket.take(600, 1_000, 0);
    // 299 of 600 are left: nothing is given ahead, and the bucket counts them one by one.
    const rest = Array.from({ length: 300 }, () => bucket.take(600, 1_000, 0));
    expect(rest.every(({ ahead }) => ahead === 0)).toBe(true);
    expect(rest.filter(({ retryAfterSeconds }) => retryAfterSeconds === null)).toHaveLength(299);
    expect(rest.at(-1)).toEqual({ retryAfterSeconds: 1, ahead: 0 });
  });

  it('takes up room in the bucket, which does not fill in its place', () => {
    const bucket = new LendingBucket();
    expect(bucket.take(600, 5, 0)).toEqual({ retryAfterSeconds: null, ahead: 5 });
    // Long enough for the bucket to be full again, and the five may still be used.
    const rest = Array.from({ length: 600 }, () => bucket.take(600, 0, 990).retryAfterSeconds);
    expect(rest.filter((wait) => wait === null)).toHaveLength(595);
  });

  it('never lets a request pass that the bucket alone would have refused, and says exactly when to come again', () => {
    const requests = fc.array(fc.record({ at: fc.nat(100), who: fc.nat(2), times: fc.integer({ min: 1, max: 200 }) }), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600 }), requests, (requestsPerMinute, list) => {
        const bucket = new LendingBucket();
        const isolates = [0, 1, 2].map(() => isolate(bucket, requestsPerMinute));
        let strict: TokenBucket | undefined;
        let now = 1_700_000_000_000;
        for (const { at, who, times } of list) {
          now += at * 10;
          for (let i = 0; i < times; i++) {
            const wait = isolates[who]!.take(now);
            if (wait !== null) {
              expect(
                new LendingBucket(bucket.bucket).take(requestsPerMinute, 0, now + wait * 1_000).retryAfterSeconds,
              ).toBeNull();
              continue;
            }
            const alone = takeToken(strict, requestsPerMinute, now);
            expect(alone.retryAfterSeconds).toBeNull();
            strict = alone.bucket;
          }
        }
      }),
      { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) },
    );
  });
});
