import { DurableObject } from 'cloudflare:workers';
import { fullAfterMs, type TokenBucket, takeToken } from '../../../lib/token-bucket.ts';
import type { Env } from '../env.ts';

const SAVE_AFTER_MS = 500;

interface Kept {
  bucket: TokenBucket;
  requestsPerMinute: number;
}

/** The token bucket of one key, named by the key's hash: there is one in the world, so all edges share it. */
export class QuotaObject extends DurableObject<Env> {
  #kept: Kept | undefined;
  #loaded = false;
  #saving = false;

  /** Takes one request; seconds to wait where there is none left, else null. */
  async take(requestsPerMinute: number): Promise<number | null> {
    if (!this.#loaded) {
      this.#kept ??= await this.ctx.storage.get<Kept>('bucket');
      if ((await this.ctx.storage.getAlarm()) === null) await this.ctx.storage.setAlarm(Date.now() + 60_000);
      this.#loaded = true;
    }
    const { bucket, retryAfterSeconds } = takeToken(this.#kept?.bucket, requestsPerMinute, Date.now());
    this.#kept = { bucket, requestsPerMinute };
    this.#saveSoon();
    return retryAfterSeconds;
  }

  /** Not at each request: nobody waits for the disk, and a crash forgets no more than half a second. */
  #saveSoon(): void {
    if (this.#saving) return;
    this.#saving = true;
    setTimeout(() => {
      this.#saving = false;
      if (this.#kept) void this.ctx.storage.put('bucket', this.#kept);
    }, SAVE_AFTER_MS);
  }

  /** Forgets a full bucket, so that keys out of use cost no storage. */
  async alarm(): Promise<void> {
    const kept = this.#kept ?? (await this.ctx.storage.get<Kept>('bucket'));
    const waitMs = kept ? kept.bucket.at + fullAfterMs(kept.bucket, kept.requestsPerMinute) - Date.now() : 0;
    if (waitMs > 0) return this.ctx.storage.setAlarm(Date.now() + Math.max(waitMs, 60_000));
    this.#kept = undefined;
    this.#loaded = false;
    await this.ctx.storage.deleteAll();
  }
}
