import type { Priority } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import type { Cost } from './cost.ts';

export interface AdmissionLimits {
  /** Most requests that are being checked, wait, or run. */
  requests: number;
  /** Most tokens of all admitted requests together. A single request may have more. */
  tokens: number;
  /** Most characters of all admitted requests' texts together. A single request may have more. */
  characters: number;
}

export const DEFAULT_ADMISSION_LIMITS: AdmissionLimits = {
  requests: 1_024,
  tokens: 131_072,
  characters: 64 * 1024 * 1024,
};

/** Fraction of each limit up to which batch requests are admitted, so that the rest stays free for interactive ones. */
const BATCH_SHARE = 0.75;

/** Represents an admitted request's slot in the queue. */
export interface AdmissionSlot {
  /**
   * Frees the slot; further calls do nothing.
   *
   * @param answered true if the request got its answer, so that its time counts in the measured speed
   */
  release(answered: boolean): void;
  /** Replaces the estimate of the request's tokens with the counted number. */
  recount(tokens: number): void;
}

/**
 * Factor by which older measurements lose weight with each answer, so that the speed is an average over about ten
 * answers.
 */
const DECAY = 0.9;
/** Assumed speed before the first answer: so many tokens in so many milliseconds. */
const INITIAL_SPEED = { ms: 500, tokens: 300 };
/**
 * Longest `Retry-After` that is estimated from the work ahead, in milliseconds. Without this bound, refused callers
 * that never return would make the estimates grow for all others. Callers beyond it get a `Retry-After` between once
 * and twice this time, so that they return spread out.
 */
const MAX_ESTIMATED_WAIT_MS = 30_000;
/**
 * Multiples of this number, modulo 1, are spread evenly over [0, 1) for any count of them (Weyl's equidistribution
 * theorem).
 */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/**
 * Bounds the number and size of admitted requests. It is in the server, which can refuse a request at once, because the
 * engine process reads messages only between two steps. A refusal's `Retry-After` estimates when the work ahead will be
 * done, at the measured speed. Callers that were refused earlier count as work ahead, so that clients that obey
 * `Retry-After` return one after another.
 */
export class AdmissionQueue {
  readonly #limits: AdmissionLimits;
  readonly #now: () => number;
  readonly #held = new Set<AdmissionSlot>();
  #tokens = 0;
  #characters = 0;
  #speed = INITIAL_SPEED;
  /** Start of the current speed measurement: the last answer, or the arrival of the first request in an empty queue. */
  #since = 0;
  /** Time at which the refused callers will have been served if they obey `Retry-After`. */
  #bookedUntil = 0;
  /**
   * Number of refused callers so far whose estimated wait reached `MAX_ESTIMATED_WAIT_MS`. Spreads the next ones over
   * once to twice that time.
   */
  #spread = 0;

  /** @param now returns milliseconds of a monotonic clock */
  constructor(limits: AdmissionLimits = DEFAULT_ADMISSION_LIMITS, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  get held(): number {
    return this.#held.size;
  }

  /** Admits a request. Throws `overloaded` with `Retry-After` if the queue is full. */
  admit(cost: Cost, priority: Priority = 'interactive'): AdmissionSlot {
    const share = priority === 'batch' ? BATCH_SHARE : 1;
    if (this.#held.size > 0 && !this.#fits(cost, share)) throw this.#refusal(cost.tokens);
    if (this.#held.size === 0) this.#since = this.#now();
    let { tokens } = cost;
    const slot: AdmissionSlot = {
      release: (answered) => {
        if (!this.#held.delete(slot)) return;
        this.#tokens -= tokens;
        this.#characters -= cost.characters;
        if (answered) this.#measure(tokens);
      },
      recount: (counted) => {
        if (!this.#held.has(slot)) return;
        this.#tokens += counted - tokens;
        tokens = counted;
      },
    };
    this.#held.add(slot);
    this.#tokens += tokens;
    this.#characters += cost.characters;
    return slot;
  }

  /** Tells whether a request fits beside the admitted ones, within a fraction of the limits. */
  #fits({ tokens, characters }: Cost, share: number): boolean {
    const most = this.#limits;
    return (
      this.#held.size + 1 <= share * most.requests &&
      this.#tokens + tokens <= share * most.tokens &&
      this.#characters + characters <= share * most.characters
    );
  }

  #measure(tokens: number): void {
    const now = this.#now();
    this.#speed = {
      ms: DECAY * this.#speed.ms + now - this.#since,
      tokens: DECAY * this.#speed.tokens + tokens,
    };
    this.#since = now;
  }

  #refusal(tokens: number): AssayError {
    const now = this.#now();
    const ahead = Math.max(now + this.#msOf(this.#tokens), this.#bookedUntil);
    this.#bookedUntil = Math.min(ahead + this.#msOf(tokens), now + MAX_ESTIMATED_WAIT_MS);
    const waitMs = ahead - now < MAX_ESTIMATED_WAIT_MS ? ahead - now : this.#spreadWaitMs();
    return new AssayError('overloaded', 'Too many requests are waiting. Try again after the seconds in Retry-After.', {
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
    });
  }

  #spreadWaitMs(): number {
    return MAX_ESTIMATED_WAIT_MS * (1 + ((this.#spread++ * GOLDEN_RATIO) % 1));
  }

  #msOf(tokens: number): number {
    return (tokens * this.#speed.ms) / this.#speed.tokens;
  }
}
