import { describe, expect, it } from 'vitest';
import { post, question } from './calls.ts';
import { withEdge } from './fixture.ts';

const CONTEXTS = 200;
const REQUESTS = 1_000;
const AT_ONCE = 16;

describe('1,000 requests on 200 contexts over three boxes', () => {
  const fixture = withEdge();

  it('keep each context on its box, and no box far above its share', async () => {
    const { edge, upstreams } = fixture;
    const contexts = Array.from(
      { length: REQUESTS },
      (_, i) => `Contract no. ${(i * 7919) % CONTEXTS}: ${'text '.repeat(50)}`,
    );
    const left = contexts.entries();
    const worker = async () => {
      for (const [i, context] of left) {
        const response = await post(edge, '/v1/tasks', question(context), {
          headers: { 'x-request-id': `request-${i}` },
        });
        expect(response.status).toBe(200);
        await response.arrayBuffer();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));

    const upstreamOf = new Map<string, string>();
    for (const { name, recorded } of upstreams) {
      for (const one of recorded) if (one.call === 'runTasks') upstreamOf.set(String(one.requestId), name);
    }
    expect(upstreamOf.size).toBe(REQUESTS);
    const home = new Map<string, string>();
    const counts = new Map<string, number>();
    let repeated = 0;
    let same = 0;
    for (const [i, context] of contexts.entries()) {
      const upstream = upstreamOf.get(`request-${i}`)!;
      counts.set(upstream, (counts.get(upstream) ?? 0) + 1);
      const first = home.get(context);
      if (first === undefined) home.set(context, upstream);
      else {
        repeated++;
        if (first === upstream) same++;
      }
    }
    expect(repeated).toBe(REQUESTS - CONTEXTS);
    expect(same / repeated).toBeGreaterThanOrEqual(0.95);
    expect(Math.max(...counts.values())).toBeLessThanOrEqual((1.3 * REQUESTS) / upstreams.length);
  }, 60_000);
});
