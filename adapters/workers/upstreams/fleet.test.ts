import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../lib/clock.ts';
import { type Hash64, hash64 } from '../../../lib/prompt/affinity.ts';
import { BREAKER } from './breaker.ts';
import { Fleet, rendezvous } from './fleet.ts';
import { LOAD } from './load.ts';
import type { EdgeReport, FleetStatus } from './report.ts';
import { parseUpstreams } from './upstream.ts';

const MODEL = 'assay/starter';
const upstreams = parseUpstreams({
  BOXES: ['a', 'b', 'c', 'd'].map((name) => ({
    name,
    url: `https://${name}.example`,
    key_secret: 'K',
    models: name === 'd' ? ['other/model'] : [MODEL],
  })),
});

function setUp(status: FleetStatus = {}) {
  let now = 1_000_000;
  const reports: EdgeReport[] = [];
  const told: { status: FleetStatus | Error } = { status };
  const working: Promise<unknown>[] = [];
  const clock: Clock = { now: () => now, sleep: async () => {} };
  const fleet = new Fleet({
    upstreams,
    clock,
    edge: 'me',
    waitUntil: (work) => working.push(work),
    report: async (report) => {
      reports.push(structuredClone(report));
      if (told.status instanceof Error) throw told.status;
      return told.status;
    },
  });
  const names = (key: Hash64, model: string | undefined = MODEL) =>
    fleet.candidates(model, key).map(({ name }) => name);
  const attempt = (name: string, outcome: 'answered' | 'failed' | 'left') =>
    fleet.begin(upstreams.find((upstream) => upstream.name === name)!)(outcome);
  return {
    fleet,
    reports,
    told,
    names,
    attempt,
    upstream: (name: string) => upstreams.find((one) => one.name === name)!,
    pass: (ms: number) => {
      now += ms;
    },
    settled: () => Promise.all(working.splice(0)),
  };
}

const status = (some: Partial<FleetStatus[string]>): FleetStatus[string] => ({
  failures: 0,
  openings: 0,
  opensForMs: null,
  load: 0,
  ...some,
});

describe('Fleet', () => {
  it('offers the boxes of a model in the order of the key, the same each time', async () => {
    const { fleet, names } = setUp();
    const key = hash64('context');
    expect([...names(key)].sort()).toEqual(['a', 'b', 'c']);
    expect(names(key)).toEqual(names(key));
    expect(names(key, 'other/model')).toEqual(['d']);
    expect(fleet.candidates(undefined, key)).toHaveLength(4);
    expect(names(key, 'no/such')).toEqual([]);
  });

  it('skips a box while it is too busy', async () => {
    const { names, fleet, upstream, pass } = setUp();
    const key = hash64('context');
    const [first] = names(key);
    const ends = Array.from({ length: LOAD.idle }, () => fleet.begin(upstream(first!)));
    expect(names(key).at(-1)).toBe(first);
    for (const end of ends) end('answered');
    pass(10 * LOAD.memoryMs);
    expect(names(key)[0]).toBe(first);
  });

  it('counts what other edges send, but not its own requests twice', async () => {
    const { names, told, attempt, pass, settled, fleet, upstream } = setUp();
    const key = hash64('context');
    const [first] = names(key);
    for (let i = 0; i < LOAD.idle - 2; i++) fleet.begin(upstream(first!));
    await settled();
    told.status = { [first!]: status({ load: LOAD.idle - 2 }) };
    pass(1_000);
    attempt('d', 'left');
    await settled();
    expect(names(key)[0]).toBe(first);
    told.status = { [first!]: status({ load: 2 * LOAD.idle }) };
    pass(1_000);
    attempt('d', 'left');
    await settled();
    expect(names(key).at(-1)).toBe(first);
  });

  it('prefers boxes that have the model loaded', async () => {
    const { names, told, attempt, settled } = setUp();
    const key = hash64('context');
    const [first, second, third] = names(key);
    told.status = { [first!]: status({ active: [] }), [second!]: status({ active: ['other/model', MODEL] }) };
    attempt('d', 'left');
    await settled();
    expect(names(key)).toEqual([second, third, first]);
  });

  it('learns without requests of its own what others report, once a second at most', async () => {
    const { fleet, told, reports, settled, pass } = setUp();
    told.status = { a: status({ active: [MODEL], device: 'NPU' }) };
    fleet.refresh();
    await settled();
    expect(fleet.status()[0]).toMatchObject({ active: [MODEL], device: 'NPU' });
    fleet.refresh();
    expect(reports.length).toBe(1);
    pass(1000);
    fleet.refresh();
    expect(reports.length).toBe(2);
  });

  it('leaves a failing box alone, then tries it with one request', async () => {
    const { names, attempt, pass, fleet, upstream } = setUp();
    const key = hash64('context');
    const [first] = names(key);
    for (let i = 0; i < BREAKER.failuresToOpen; i++) attempt(first!, 'failed');
    expect(names(key)).not.toContain(first);
    pass(BREAKER.pauseMs);
    expect(names(key)[0]).toBe(first);
    const end = fleet.begin(upstream(first!));
    expect(names(key)).not.toContain(first);
    end('answered');
    expect(names(key)[0]).toBe(first);
  });

  it('learns from other edges that a box fails, and that it has recovered', async () => {
    const { names, told, attempt, pass, settled } = setUp({
      a: status({ failures: 3, openings: 1, opensForMs: 5_000 }),
    });
    const key = hash64('context');
    attempt('d', 'left');
    await settled();
    expect(names(key)).not.toContain('a');
    told.status = {};
    pass(1_000);
    attempt('d', 'left');
    await settled();
    expect(names(key)).toContain('a');
  });

  it('keeps failures that it saw while it was reporting', async () => {
    const { names, attempt, settled } = setUp();
    for (let i = 0; i < BREAKER.failuresToOpen; i++) attempt('a', 'failed');
    await settled();
    expect(names(hash64('context'))).not.toContain('a');
  });

  it('reports once a second, sooner after a failure, and only what there is to say', async () => {
    const { reports, attempt, pass, settled } = setUp();
    attempt('a', 'answered');
    await settled();
    attempt('a', 'answered');
    pass(100);
    attempt('b', 'failed');
    await settled();
    pass(1_000);
    attempt('c', 'left');
    await settled();
    const nothing = { ended: 0, answered: false, failed: 0 };
    expect(reports.map((report) => report.upstreams)).toEqual([
      { a: { ...nothing, running: 1 } },
      { a: { ...nothing, running: 0, ended: 2, answered: true }, b: { ...nothing, running: 0, ended: 1, failed: 1 } },
      { c: { ...nothing, running: 1 } },
    ]);
  });

  it('keeps what it knows if its report is not accepted', async () => {
    const { names, told, attempt, settled } = setUp();
    told.status = new Error('the object is away');
    attempt('a', 'answered');
    await settled();
    expect(names(hash64('context'))).toHaveLength(3);
  });
});

const fleet = (count: number, weight = 1) => Array.from({ length: count }, (_, i) => ({ name: `npu-${i}`, weight }));

function keys(count: number): Hash64[] {
  return Array.from({ length: count }, (_, i) => hash64(`context ${i}`));
}

describe('rendezvous', () => {
  it('does not depend on the order of the list', async () => {
    const upstreams = fleet(20);
    for (const key of keys(50)) {
      expect(rendezvous(key, upstreams)).toEqual(rendezvous(key, upstreams.toReversed()));
    }
  });

  it('moves only the keys of a box that leaves, and spreads them over the others', async () => {
    const upstreams = fleet(10);
    const left = upstreams.filter((upstream) => upstream.name !== 'npu-3');
    const heirs = new Set<string>();
    for (const key of keys(2_000)) {
      const [before, second] = rendezvous(key, upstreams);
      const after = rendezvous(key, left)[0];
      expect(after).toBe(before?.name === 'npu-3' ? second : before);
      if (before?.name === 'npu-3') heirs.add(after!.name);
    }
    expect(heirs.size).toBe(9);
  });

  it('gives every box its share, also the weighted one', async () => {
    const upstreams = [...fleet(9), { name: 'big', weight: 3 }];
    const first = new Map<string, number>();
    const all = keys(24_000);
    for (const key of all) {
      const [upstream] = rendezvous(key, upstreams);
      first.set(upstream!.name, (first.get(upstream!.name) ?? 0) + 1);
    }
    // Allows five standard deviations of a binomial distribution. The weights sum to 12.
    for (const upstream of upstreams) {
      const share = upstream.weight / 12;
      const deviation = Math.sqrt(all.length * share * (1 - share));
      expect(Math.abs(first.get(upstream.name)! - all.length * share)).toBeLessThan(5 * deviation);
    }
  });
});
