import { DurableObject } from 'cloudflare:workers';
import { fullAfterMs, type TokenBucket } from '../../../lib/token-bucket.ts';
import type { Env } from '../env.ts';
import { type Given, LendingBucket, type QuotaCalls } from './lending-bucket.ts';

const SAVE_AFTER_MS = 500;

interface Kept {
  bucket: TokenBucket;
  requestsPerMinute: number;
}

/** The token bucket of one key, named by the key's hash: there is one in the world, so all edges share it. */
export class QuotaObject extends DurableObject<Env> implements QuotaCalls {
  readonly #lending = new LendingBucket();
  #requestsPerMinute = 1;
  #loaded = false;
  #saving = false;

  /** Takes one request, and up to `wanted` ahead. */
  async take(requestsPerMinute: number, wanted: number): Promise<Given> {
    if (!this.#loaded) {
      this.#lending.bucket ??= (await this.ctx.storage.get<Kept>('bucket'))?.bucket;
      if ((await this.ctx.storage.getAlarm()) === null) await this.ctx.storage.setAlarm(Date.now() + 60_000);
      this.#loaded = true;
    }
    this.#requestsPerMinute = requestsPerMinute;
    const given = this.#lending.take(requestsPerMinute, wanted, Date.now());
    this.#saveSoon();
    return given;
  }

  /** Not at each request: nobody waits for the disk, and a crash forgets no more than half a second. */
  #saveSoon(): void {
    if (this.#saving) return;
    this.#saving = true;
    setTimeout(() => {
      this.#saving = false;
      const kept = this.#kept();
      if (kept) void this.ctx.storage.put('bucket', kept);
    }, SAVE_AFTER_MS);
  }

  #kept(): Kept | undefined {
    const { bucket } = this.#lending;
    return bucket && { bucket, requestsPerMinute: this.#requestsPerMinute };
  }

  /** Forgets a full bucket, so that keys out of use cost no storage. */
  async alarm(): Promise<void> {
    const kept = this.#kept() ?? (await this.ctx.storage.get<Kept>('bucket'));
    const waitMs = kept ? kept.bucket.at + fullAfterMs(kept.bucket, kept.requestsPerMinute) - Date.now() : 0;
    if (waitMs > 0) return this.ctx.storage.setAlarm(Date.now() + Math.max(waitMs, 60_000));
    this.#lending.bucket = undefined;
    this.#loaded = false;
    await this.ctx.storage.deleteAll();
  }
}
