import { DurableObject } from 'cloudflare:workers';
import * as v from 'valibot';
import { systemClock } from '../../lib/clock.ts';
import { QUOTA_UNITS, type QuotaUnit } from '../../lib/keys.ts';
import { changeBucket, fullAfterMs, type TokenBucket, takeToken } from '../../lib/limits/token-bucket.ts';
import type { DurableObjectState } from './bindings.ts';
import type { Env, QuotaCalls } from './env.ts';
import { FleetHealth } from './upstreams/health.ts';
import { EdgeReport, type FleetCalls, type FleetStatus } from './upstreams/report.ts';
import { parseUpstreams } from './upstreams/upstream.ts';

const PROBE_EVERY_MS = 5_000;

/**
 * Collects the reports of all edge isolates, as a Durable Object. While any isolate sends reports, it probes the
 * upstreams' health; otherwise it sleeps.
 */
export class FleetObject extends DurableObject<Env> implements FleetCalls {
  readonly #health: FleetHealth;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const upstreams = parseUpstreams(env);
    this.#health = new FleetHealth({ upstreams, fetch: (...request) => fetch(...request), clock: systemClock });
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

const SAVE_AFTER_MS = 500;

type Kept = Partial<Record<QuotaUnit, { bucket: TokenBucket; perMinute: number }>>;

/**
 * Holds the token buckets of one key, as a Durable Object named by the key's hash. A Durable Object exists once
 * worldwide, so all edge isolates share them.
 */
export class QuotaObject extends DurableObject<Env> implements QuotaCalls {
  #kept: Kept = {};
  #loaded = false;
  #saving = false;

  async take(unit: QuotaUnit, perMinute: number, amount: number): Promise<number | null> {
    await this.#load();
    const { bucket, retryAfterSeconds } = takeToken(this.#kept[unit]?.bucket, perMinute, Date.now(), amount);
    this.#keep(unit, bucket, perMinute);
    return retryAfterSeconds;
  }

  async giveBack(unit: QuotaUnit, perMinute: number, amount: number): Promise<void> {
    await this.#load();
    this.#keep(unit, changeBucket(this.#kept[unit]?.bucket, perMinute, Date.now(), amount), perMinute);
  }

  async #load(): Promise<void> {
    if (this.#loaded) return;
    const stored = await this.ctx.storage.get<Kept>('buckets');
    if ((await this.ctx.storage.getAlarm()) === null) await this.ctx.storage.setAlarm(Date.now() + 60_000);
    this.#kept = { ...stored, ...this.#kept };
    this.#loaded = true;
  }

  /**
   * Keeps a bucket and saves all within half a second. No request waits for the disk, and a crash loses at most what
   * was counted in the last half second.
   */
  #keep(unit: QuotaUnit, bucket: TokenBucket, perMinute: number): void {
    this.#kept[unit] = { bucket, perMinute };
    if (this.#saving) return;
    this.#saving = true;
    setTimeout(() => {
      this.#saving = false;
      void this.ctx.storage.put('buckets', this.#kept);
    }, SAVE_AFTER_MS);
  }

  /** Deletes the stored buckets once they are full again, so unused keys take no storage. */
  async alarm(): Promise<void> {
    await this.#load();
    const waits = QUOTA_UNITS.map((unit) => {
      const kept = this.#kept[unit];
      return kept ? kept.bucket.at + fullAfterMs(kept.bucket, kept.perMinute) - Date.now() : 0;
    });
    const waitMs = Math.max(...waits);
    if (waitMs > 0) return this.ctx.storage.setAlarm(Date.now() + Math.max(waitMs, 60_000));
    this.#kept = {};
    this.#loaded = false;
    await this.ctx.storage.deleteAll();
  }
}
