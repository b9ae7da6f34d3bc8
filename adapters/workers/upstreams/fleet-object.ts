import { DurableObject } from 'cloudflare:workers';
import * as v from 'valibot';
import { systemClock } from '../../../lib/clock.ts';
import type { DurableObjectState } from '../bindings.ts';
import type { Env } from '../env.ts';
import { Health } from './health.ts';
import { EdgeReport, type FleetCalls, type FleetStatus } from './report.ts';
import { parseUpstreams } from './upstream.ts';

const PROBE_EVERY_MS = 5_000;

/**
 * Collects the reports of all edge isolates, as a Durable Object. While any isolate sends reports, it probes the
 * upstreams' health; otherwise it sleeps.
 */
export class FleetObject extends DurableObject<Env> implements FleetCalls {
  readonly #health: Health;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const upstreams = parseUpstreams(env);
    this.#health = new Health({ upstreams, fetch: (...request) => fetch(...request), clock: systemClock });
  }

  async report(report: EdgeReport): Promise<FleetStatus> {
    const status = this.#health.report(v.parse(EdgeReport, report));
    if ((await this.ctx.storage.getAlarm()) === null) await this.ctx.storage.setAlarm(Date.now());
    return status;
  }

  async alarm(): Promise<void> {
    await this.#health.probe();
    if (this.#health.watched()) await this.ctx.storage.setAlarm(Date.now() + PROBE_EVERY_MS);
  }
}
