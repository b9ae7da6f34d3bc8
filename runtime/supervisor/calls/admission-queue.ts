import type { Priority } from '../../../lib/backend.ts';
import { AssayError } from '../../../lib/errors.ts';
import type { RequestSize } from '../../../lib/limits/request-size.ts';

export interface AdmissionLimits {
  /** Maximum number of requests that are being checked, waiting or running. */
  requests: number;
  /** Maximum total of all admitted requests' `RequestSize.tokens`. A request in an empty queue may exceed it. */
  tokens: number;
  /** Maximum total of all admitted requests' `RequestSize.characters`. A request in an empty queue may exceed it. */
  characters: number;
}

export const DEFAULT_ADMISSION_LIMITS: AdmissionLimits = {
  requests: 1_024,
  tokens: 131_072,
  characters: 64 * 1024 * 1024,
};

/**
 * Fraction of each limit that batch requests may fill, and that the requests of one caller may fill. The rest stays
 * free for interactive requests and for other callers.
 */
const SHARE = 0.75;
/**
 * Maximum number of tokens that a request counts. A larger one runs in parts, and the engine's turns between callers
 * bound what it takes from others.
 */
const MOST_COUNTED = 16_384;

/** Represents an admitted request. */
export interface Admission {
  /**
   * Ends the admission; further calls do nothing.
   *
   * @param answered true if the request was answered, and its time thus counts in the measured speed
   */
  release(answered: boolean): void;
  /** Replaces the request's `RequestSize.tokens`, once its prompt tokens are counted. Does nothing after `release`. */
  recount(tokens: number): void;
}

/** Weight that earlier measurements keep at each answer. With 0.9, the speed is an average over about ten answers. */
const DECAY = 0.9;
/** Assumed speed before the first answer: `tokens` tokens in `ms` milliseconds. */
const INITIAL_SPEED = { ms: 500, tokens: 300 };
/**
 * Longest `Retry-After` that is estimated from the work ahead, in milliseconds. Without this bound, refused callers
 * that never return would make the estimates grow for all others. A longer estimate is replaced by a wait between once
 * and twice the bound, different for each caller, which keeps them from returning together.
 */
const MAX_ESTIMATED_WAIT_MS = 30_000;
/**
 * Spreads the waits of refused callers: multiples of this number, modulo 1, are distributed evenly over [0, 1), however
 * many there are (Weyl's equidistribution theorem).
 */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/**
 * Bounds the number and size of admitted requests. The queue is in the server, because the engine process reads
 * messages only between two steps and could not refuse a request at once. A refusal's `Retry-After` estimates when the
 * work ahead will be done, at the measured speed. Callers that were refused earlier count as work ahead, so clients
 * that obey `Retry-After` return one after another.
 */
export class AdmissionQueue {
  readonly #limits: AdmissionLimits;
  readonly #now: () => number;
  readonly #held = new Set<{ caller: string | undefined; tokens: number; characters: number }>();
  #tokens = 0;
  #characters = 0;
  #speed = INITIAL_SPEED;
  /** Start of the current speed measurement: the last answer, or the arrival of the first request in an empty queue. */
  #since = 0;
  /** Time at which the refused callers will have been served if they obey `Retry-After`. */
  #bookedUntil = 0;
  /**
   * Number of refused callers so far whose estimated wait reached `MAX_ESTIMATED_WAIT_MS`. It determines the wait of
   * the next such caller.
   */
  #spread = 0;

  /** @param now returns milliseconds of a monotonic clock */
  constructor(limits: AdmissionLimits = DEFAULT_ADMISSION_LIMITS, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Number of admitted requests whose admission has not ended. */
  get held(): number {
    return this.#held.size;
  }

  /** Tokens of these requests: estimated, until the engine has counted them. */
  get tokens(): number {
    return this.#tokens;
  }

  /**
   * Admits a request. Throws `overloaded` with `Retry-After` if the request would exceed a limit,
   * or if the batch requests, or those of the caller, would exceed `SHARE` of it. An empty queue admits any request.
   *
   * @param caller name of the caller; without one, the request counts for no caller
   */
  admit(size: RequestSize, priority: Priority = 'interactive', caller?: string): Admission {
    const { characters } = size;
    const tokens = Math.min(size.tokens, MOST_COUNTED);
    if (this.#held.size > 0) {
      const own = caller === undefined ? [] : [...this.#held].filter((admission) => admission.caller === caller);
      const ownTotal = own.reduce(
        (sum, admission) => ({
          tokens: sum.tokens + admission.tokens,
          characters: sum.characters + admission.characters,
        }),
        { tokens: 0, characters: 0 },
      );
      const total = { requests: this.#held.size, tokens: this.#tokens, characters: this.#characters };
      const fits =
        this.#fits({ tokens, characters }, total, priority === 'batch' ? SHARE : 1) &&
        (own.length === 0 || this.#fits({ tokens, characters }, { requests: own.length, ...ownTotal }, SHARE));
      if (!fits) throw this.#refusal(tokens);
    }
    if (this.#held.size === 0) this.#since = this.#now();
    const held = { caller, tokens, characters };
    this.#held.add(held);
    this.#tokens += tokens;
    this.#characters += characters;
    return {
      release: (answered) => {
        if (!this.#held.delete(held)) return;
        this.#tokens -= held.tokens;
        this.#characters -= characters;
        if (answered) this.#measure(held.tokens);
      },
      recount: (counted) => {
        if (!this.#held.has(held)) return;
        this.#tokens -= held.tokens;
        held.tokens = Math.min(counted, MOST_COUNTED);
        this.#tokens += held.tokens;
      },
    };
  }

  /** Tells whether a request fits beside admitted ones, within the fraction `share` of each limit. */
  #fits(size: RequestSize, beside: AdmissionLimits, share: number): boolean {
    const most = this.#limits;
    return (
      beside.requests + 1 <= share * most.requests &&
      beside.tokens + size.tokens <= share * most.tokens &&
      beside.characters + size.characters <= share * most.characters
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
