import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type TokenBucket, takeToken } from '../../../lib/token-bucket.ts';
import { LEASE_MS, Lease } from './lease.ts';
import { LendingBucket } from './lending-bucket.ts';

/** An isolate that counts how often it asks, and the tokens it took ahead and did not use. */
function isolate(bucket: LendingBucket, requestsPerMinute: number) {
  const lease = new Lease();
  let asked = 0;
  let unused = 0;
  /** A request that comes now: seconds to wait (null where it passes), known when the answer of the object has come. */
  const begin = (now: number): (() => number | null) => {
    if (lease.use(now)) {
      unused--;
      return () => null;
    }
    asked++;
    const wanted = lease.ask(now);
    const { retryAfterSeconds, ahead } = bucket.take(requestsPerMinute, wanted, now);
    unused += ahead;
    return () => {
      if (wanted > 0) lease.hold(ahead, now);
      return retryAfterSeconds;
    };
  };
  return { asked: () => asked, unused: () => unused, begin, take: (now: number) => begin(now)() };
}

/** One that asked for tokens at 10. */
function leaseThatAsked(): Lease {
  const lease = new Lease();
  for (const now of [0, 10]) {
    lease.use(now);
    lease.ask(now);
  }
  return lease;
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
    const lease = leaseThatAsked();
    lease.hold(2, 10);
    expect([lease.use(9 + LEASE_MS), lease.use(10 + LEASE_MS)]).toEqual([true, false]);
  });

  it('asks for one lot at a time, and again when the answer does not come', () => {
    const lease = leaseThatAsked();
    for (const now of [11, 9 + LEASE_MS]) {
      expect(lease.use(now)).toBe(false);
      expect(lease.ask(now)).toBe(0);
    }
    lease.use(10 + LEASE_MS);
    expect(lease.ask(10 + LEASE_MS)).toBe(3);
    // The first answer, after all: its time is over.
    lease.hold(2, 10);
    expect(lease.use(11 + LEASE_MS)).toBe(false);
    lease.hold(3, 10 + LEASE_MS);
    expect(lease.use(12 + LEASE_MS)).toBe(true);
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

  it('loses at most one lot of an isolate each second, also when requests come at the same time', () => {
    const request = fc.record({
      after: fc.oneof({ weight: 200, arbitrary: fc.nat(3) }, fc.nat(1_500)),
      who: fc.nat(1),
      answeredAfter: fc.oneof({ weight: 200, arbitrary: fc.nat(20) }, fc.nat(3_000)),
    });
    const requests = fc.array(request, { maxLength: 400, size: 'max' });
    fc.assert(
      fc.property(fc.integer({ min: 60, max: 600 }), requests, (requestsPerMinute, list) => {
        const bucket = new LendingBucket();
        const isolates = [isolate(bucket, requestsPerMinute), isolate(bucket, requestsPerMinute)];
        let now = 0;
        let awaited: { at: number; answer: () => number | null }[] = [];
        for (const { after, who, answeredAfter } of list) {
          now += after;
          const come = awaited.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
          for (const { answer } of come) answer();
          awaited = awaited.filter(({ at }) => at > now);
          awaited.push({ at: now + answeredAfter, answer: isolates[who]!.begin(now) });
        }
        const lots = 1 + Math.floor(now / LEASE_MS);
        for (const { unused } of isolates) {
          expect(unused()).toBeLessThanOrEqual(lots * Math.floor(requestsPerMinute / 60));
        }
      }),
      { numRuns: Number(process.env.ASSAY_PROPERTY_RUNS ?? 200) },
    );
  });
});
