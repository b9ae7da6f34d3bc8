import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../lib/clock.ts';
import { BREAKER } from './breaker.ts';
import { FleetHealth } from './health.ts';
import type { UpstreamReport } from './report.ts';
import { parseUpstreams } from './upstream.ts';

const upstreams = parseUpstreams({
  BOXES: ['a', 'b'].map((name) => ({
    name,
    url: `https://${name}.example`,
    key_secret: 'K',
    models: ['assay/starter'],
  })),
});

function setUp(answer: (url: string) => Response | Promise<Response> = () => Response.json({ active_model: 'none' })) {
  let now = 1_000_000;
  const asked: string[] = [];
  const clock: Clock = { now: () => now, sleep: async () => {} };
  const fetch = async (url: string) => {
    asked.push(url);
    return answer(url);
  };
  const health = new FleetHealth({ upstreams, fetch: fetch as unknown as typeof globalThis.fetch, clock });
  const pass = (ms: number) => {
    now += ms;
  };
  const say = (edge: string, report: Partial<UpstreamReport> = {}) =>
    health.report({ edge, upstreams: { a: { running: 0, ended: 0, answered: false, failed: 0, ...report } } }).a;
  return { health, say, pass, asked };
}

describe('Health', () => {
  it('adds up what the edges send, and what they take back', () => {
    const { say } = setUp();
    expect(say('one', { running: 3 })?.load).toBe(3);
    expect(say('two', { running: 2 })?.load).toBe(5);
    expect(say('one', { running: 1 })?.load).toBe(3);
    expect(say('two', { running: 0, ended: 2 })?.load).toBe(3);
  });

  it('forgets the requests of an edge that is gone', () => {
    const { say, pass, health } = setUp();
    say('one', { running: 3 });
    pass(20_000);
    say('two', { running: 1 });
    pass(15_000);
    expect(say('two', { running: 1 })?.load).toBe(1);
    pass(40_000);
    expect(health.watched()).toBe(false);
  });

  it('opens a breaker for failures that different edges saw', () => {
    const { say } = setUp();
    say('one', { ended: 1, failed: 1 });
    say('two', { ended: 1, failed: 1 });
    expect(say('three', { ended: 1, failed: 1 })).toMatchObject({ opensForMs: BREAKER.pauseMs });
    expect(say('four', { ended: 1, answered: true })?.opensForMs).toBeNull();
  });

  it('omits a box without requests and failures', () => {
    const { health } = setUp();
    expect(health.report({ edge: 'one', upstreams: {} })).toEqual({});
    expect(
      health.report({ edge: 'one', upstreams: { gone: { running: 1, ended: 0, answered: false, failed: 0 } } }),
    ).toEqual({});
  });

  it('learns from probes which model is loaded, and on which device', async () => {
    const { health, say, asked } = setUp((url) =>
      Response.json({ device: 'NPU', active_model: url.includes('//a') ? 'assay/starter' : 'none' }),
    );
    await health.probe();
    expect(asked.sort()).toEqual(['https://a.example/health', 'https://b.example/health']);
    expect(say('one')).toMatchObject({ active: ['assay/starter'], device: 'NPU', opensForMs: null });
    expect(health.report({ edge: 'one', upstreams: {} }).b).toMatchObject({ active: [] });
  });

  it('learns which of several models answer', async () => {
    const models = [
      { id: 'a/last', state: 'loaded', status: 'error' },
      { id: 'a/first', state: 'loaded', status: 'ok' },
      { id: 'a/new', state: 'loading', status: 'loading' },
    ];
    const health = { status: 'error', state: 'loaded', active_model: 'a/last', device: 'CPU', models };
    const { health: fleet, say } = setUp(() => Response.json(health));
    await fleet.probe();
    expect(say('one')).toMatchObject({ active: ['a/first'], opensForMs: null, failures: 0 });
    for (const model of models) model.status = 'error';
    await fleet.probe();
    expect(say('one')).toMatchObject({ failures: 1 });
  });

  it.each([
    ['refuses', () => Promise.reject(new TypeError('refused'))],
    ['answers 503', () => Response.json({ active_model: 'none' }, { status: 503 })],
    ['is something else', () => new Response('<html>')],
    [
      'never ends its answer',
      () => new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(4096)) })),
    ],
  ])('opens the breaker of a box that %s three times, and closes it when it is well', async (_, answer) => {
    let well = false;
    const { health, say, pass } = setUp(() => (well ? Response.json({ active_model: 'none' }) : answer()));
    for (let i = 0; i < BREAKER.failuresToOpen; i++) await health.probe();
    expect(say('one')?.opensForMs).toBe(BREAKER.pauseMs);
    well = true;
    await health.probe();
    expect(say('one')?.opensForMs).toBe(BREAKER.pauseMs);
    pass(BREAKER.pauseMs);
    await health.probe();
    expect(say('one')?.opensForMs).toBeNull();
  });
});
