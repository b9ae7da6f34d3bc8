import { AssayError } from '../../lib/errors.ts';

export interface AdmissionLimits {
  /** Requests that are checked, wait, or run. */
  requests: number;
  /** Characters of all their texts together; a single request may have more. */
  characters: number;
}

export const DEFAULT_ADMISSION_LIMITS: AdmissionLimits = { requests: 64, characters: 64 * 1024 * 1024 };

/** Holds one request's slot in the queue. */
export interface AdmissionSlot {
  /**
   * Frees the slot; a second call does nothing. `answered`: the request got its answer, so its time counts towards the
   * speed.
   */
  release(answered: boolean): void;
}

/** Weight of earlier measurements after the next answer; the speed is an average over about ten answers. */
const DECAY = 0.9;
/** Assumed speed before the first answer: milliseconds for a number of characters. */
const INITIAL_SPEED = { ms: 500, characters: 1_000 };
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

  /** Admits a request with this number of characters. Throws `overloaded` with `Retry-After` when the queue is full. */
  admit(characters: number): AdmissionSlot {
    const full = this.#held.size >= this.#limits.requests;
    const large = this.#held.size > 0 && this.#characters + characters > this.#limits.characters;
    if (full || large) throw this.#refusal(characters);
    if (this.#held.size === 0) this.#since = this.#now();
    const slot: AdmissionSlot = {
      release: (answered) => {
        if (!this.#held.delete(slot)) return;
        this.#characters -= characters;
        if (answered) this.#measure(characters);
      },
    };
    this.#held.add(slot);
    this.#characters += characters;
    return slot;
  }

  #measure(characters: number): void {
    const now = this.#now();
    this.#speed = {
      ms: DECAY * this.#speed.ms + now - this.#since,
      characters: DECAY * this.#speed.characters + characters,
    };
    this.#since = now;
  }

  #refusal(characters: number): AssayError {
    const now = this.#now();
    const ahead = Math.max(now + this.#msOf(this.#characters), this.#bookedUntil);
    this.#bookedUntil = Math.min(ahead + this.#msOf(characters), now + MAX_ESTIMATED_WAIT_MS);
    const waitMs = ahead - now < MAX_ESTIMATED_WAIT_MS ? ahead - now : this.#spreadWaitMs();
    return new AssayError('overloaded', 'Too many requests are waiting. Try again after the seconds in Retry-After.', {
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
    });
  }

  #spreadWaitMs(): number {
    return MAX_ESTIMATED_WAIT_MS * (1 + ((this.#spread++ * GOLDEN_RATIO) % 1));
  }

  #msOf(characters: number): number {
    return (characters * this.#speed.ms) / this.#speed.characters;
  }
}

/**
 * Counts the characters of all texts and object keys in a request, which estimate its work before its tokens are known.
 */
export function charactersOf(request: object): number {
  let characters = 0;
  const open: object[] = [request];
  for (let value = open.pop(); value; value = open.pop()) {
    for (const [key, member] of Object.entries(value)) {
      characters += Array.isArray(value) ? 0 : key.length;
      if (typeof member === 'string') characters += member.length;
      else if (typeof member === 'object' && member !== null) open.push(member);
    }
  }
  return characters;
}
