import { writeFile } from 'node:fs/promises';
import { plot, type Series } from '../plot.ts';
import type { Report } from '../report.ts';
import { POLICIES } from './policies.ts';
import { rank, simulate } from './simulate.ts';
import { WORLD } from './world.ts';

/** Arrival rates that are simulated, in requests per second for the whole fleet. */
const RATES = [100, 200, 300, 400, 500, 750, 1_000, 1_500, 2_000];
const PLOT = new URL('../../docs/fleet-routing.svg', import.meta.url);

/**
 * Compares routing policies on a simulated fleet and draws docs/fleet-routing.svg. The simulation has its own clock, so
 * the figures are the same on every machine.
 */
export async function run(report: Report): Promise<void> {
  const ranks = rank(WORLD);
  const hits: Series[] = [];
  const waits: Series[] = [];
  for (const [system, policy] of Object.entries(POLICIES)) {
    const outcomes = RATES.map((rate) => ({ rate, ...simulate(WORLD, rate, policy, ranks) }));
    for (const { rate, hitShare, waitP50, waitP99, busiest } of outcomes) {
      const figure = { system, case: `${rate} requests/s` };
      report({ ...figure, metric: 'prefix-cache hits', value: hitShare, unit: 'share' });
      report({ ...figure, metric: 'wait, median', value: waitP50, unit: 'ms' });
      report({ ...figure, metric: 'wait, p99', value: waitP99, unit: 'ms' });
      report({ ...figure, metric: 'busiest box', value: busiest, unit: 'x mean' });
    }
    hits.push({ name: system, points: outcomes.map(({ rate, hitShare }) => [rate, hitShare * 100]) });
    waits.push({ name: system, points: outcomes.map(({ rate, waitP99 }) => [rate, waitP99 / 1000]) });
  }
  const upstreams = `${WORLD.upstreams.toLocaleString('en')} boxes, ${WORLD.contexts.toLocaleString('en')} contexts (Zipf ${WORLD.skew})`;
  const x = { label: 'requests a second, whole fleet', scale: 'linear', ticks: [0, 500, 1_000, 1_500, 2_000] } as const;
  await writeFile(
    PLOT,
    plot(`Routing policies: ${upstreams}`, [
      { title: 'Requests whose context is in the box’s cache, %', series: hits, x, scale: 'linear', max: 100 },
      { title: 'Wait in the queue, 99th percentile, seconds', series: waits, x, scale: 'log', min: 0.1, max: 1_000 },
    ]),
  );
}
