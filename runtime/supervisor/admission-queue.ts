import type { Priority } from '../../lib/backend.ts';
import { AssayError } from '../../lib/errors.ts';
import type { Cost } from './cost.ts';

export interface AdmissionLimits {
  /** Requests that are checked, wait, or run. */
  requests: number;
  /** Tokens of all their work together; a single request may have more. */
  tokens: number;
  /** Characters of all their texts together; a single request may have more. */
  characters: number;
}

export const DEFAULT_ADMISSION_LIMITS: AdmissionLimits = {
  requests: 1_024,
  tokens: 131_072,
  characters: 64 * 1024 * 1024,
};

/** Share of each limit that batch requests may use, so that interactive ones are admitted beside them. */
const BATCH_SHARE = 0.75;

/** Holds one request's slot in the queue. */
export interface AdmissionSlot {
  /**
   * Frees the slot; a second call does nothing. `answered`: the request got its answer, so its time counts towards the
   * speed.
   */
  release(answered: boolean): void;
  /** Replaces the estimate of the request's tokens. */
  recount(tokens: number): void;
}

/** Weight of earlier measurements after the next answer; the speed is an average over about ten answers. */
const DECAY = 0.9;
/** Assumed speed before the first answer: milliseconds for a number of tokens. */
const INITIAL_SPEED = { ms: 500, tokens: 300 };
/**
 * Longest wait, in milliseconds, that follows from the work ahead: callers that ignore `Retry-After` must not keep the
 * others away for longer. Further callers are spread over the same time again.
 */
const MAX_ESTIMATED_WAIT_MS = 30_000;
/** Its multiples, modulo 1, are spread evenly for any number of them (Weyl's equidistribution theorem). */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/**
 * Bounds the requests in the engine process. The server keeps it, because it can refuse at once, while the engine
 * process reads messages only between two steps. A refusal says when the work ahead will be done, at the speed measured
 * so far. Callers that were refused earlier count as ahead, so that clients that obey `Retry-After` return one after
 * another.
 */
export class AdmissionQueue {
  readonly #limits: AdmissionLimits;
  readonly #now: () => number;
  readonly #held = new Set<AdmissionSlot>();
  #tokens = 0;
  #characters = 0;
  #speed = INITIAL_SPEED;
  /** Start of the current measurement: the last answer, or the arrival of the first request in an empty queue. */
  #since = 0;
  /** Time at which the refused callers that come back will have been served. */
  #bookedUntil = 0;
  /** Callers beyond the longest estimated wait. */
  #spread = 0;

  /** @param now returns milliseconds of a monotonic clock */
  constructor(limits: AdmissionLimits = DEFAULT_ADMISSION_LIMITS, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  get held(): number {
    return this.#held.size;
  }

  /** Admits a request. Throws `overloaded` with `Retry-After` when the queue is full. */
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

  /** Tells whether a request fits beside the others, within a share of the limits. */
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
