import { DurableObject } from 'cloudflare:workers';
import { fullAfterMs, type TokenBucket, takeToken } from '../../../lib/token-bucket.ts';
import type { Env } from '../env.ts';
import type { QuotaCalls } from './quota-calls.ts';

const SAVE_AFTER_MS = 500;

interface Kept {
  bucket: TokenBucket;
  requestsPerMinute: number;
}

/**
 * Holds the token bucket of one key, as a Durable Object named by the key's hash. A Durable Object exists once
 * worldwide, so all edge isolates share the bucket.
 */
export class QuotaObject extends DurableObject<Env> implements QuotaCalls {
  #bucket: TokenBucket | undefined;
  #requestsPerMinute = 1;
  #loaded = false;
  #saving = false;

  async take(requestsPerMinute: number): Promise<number | null> {
    if (!this.#loaded) {
      this.#bucket ??= (await this.ctx.storage.get<Kept>('bucket'))?.bucket;
      if ((await this.ctx.storage.getAlarm()) === null) await this.ctx.storage.setAlarm(Date.now() + 60_000);
      this.#loaded = true;
    }
    this.#requestsPerMinute = requestsPerMinute;
    const { bucket, retryAfterSeconds } = takeToken(this.#bucket, requestsPerMinute, Date.now());
    this.#bucket = bucket;
    this.#saveSoon();
    return retryAfterSeconds;
  }

  /**
   * Saves the bucket within half a second. No request waits for the disk, and a crash loses at most the requests of the
   * last half second.
   */
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
    return this.#bucket && { bucket: this.#bucket, requestsPerMinute: this.#requestsPerMinute };
  }

  /** Deletes the stored bucket once it is full again, so unused keys take no storage. */
  async alarm(): Promise<void> {
    const kept = this.#kept() ?? (await this.ctx.storage.get<Kept>('bucket'));
    const waitMs = kept ? kept.bucket.at + fullAfterMs(kept.bucket, kept.requestsPerMinute) - Date.now() : 0;
    if (waitMs > 0) return this.ctx.storage.setAlarm(Date.now() + Math.max(waitMs, 60_000));
    this.#bucket = undefined;
    this.#loaded = false;
    await this.ctx.storage.deleteAll();
  }
}
