import { AssayError } from '../../lib/errors.ts';

export interface AdmissionLimits {
  /** Requests in the engine process and on their way to it, those still being checked among them. */
  requests: number;
  /** Characters of all their texts together; a request alone may have more. */
  characters: number;
}

export const DEFAULT_ADMISSION_LIMITS: AdmissionLimits = { requests: 64, characters: 64 * 1024 * 1024 };

/** One request's slot in the queue. */
export interface AdmissionSlot {
  /** Frees the slot; a second call does nothing. `answered`: the request was answered, so its time counts towards the measured speed. */
  release(answered: boolean): void;
}

/** How much of what was measured counts on after the next answer: some ten answers make the speed. */
const KEPT = 0.9;
/** The speed before anything was answered: milliseconds for so many characters. */
const FIRST_GUESS = { ms: 500, characters: 1_000 };
/**
 * Up to here a wait is the time for the work in front; callers that do not wait as told must not keep the others away for longer. Who comes
 * on top of that is spread over as much time again.
 */
const LONGEST_HONEST_WAIT_MS = 30_000;
/** Multiples of it, modulo 1, are spread evenly however many there are (Weyl's equidistribution theorem). */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/**
 * The queue's bound, held by the server, which can refuse at any moment: the engine process listens only between two steps of the
 * model. Who is refused is told when the work in front will be done, by the speed measured so far; those who were refused earlier count as
 * in front, so that callers who do as told come back one after another and not as a herd.
 */
export class AdmissionQueue {
  readonly #limits: AdmissionLimits;
  readonly #now: () => number;
  readonly #held = new Set<AdmissionSlot>();
  #characters = 0;
  #speed = FIRST_GUESS;
  /** When the last answer was done, or the first of those that hold a place came: the engine has worked since. */
  #since = 0;
  /** When those who were told to come back will have been served. */
  #bookedUntil = 0;
  /** How many came on top of the longest honest wait. */
  #spread = 0;

  /** `now`: milliseconds that only grow. */
  constructor(limits: AdmissionLimits = DEFAULT_ADMISSION_LIMITS, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  get held(): number {
    return this.#held.size;
  }

  /** Admits a request of so many characters. Throws `overloaded` with `Retry-After` when the queue is full. */
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
      ms: KEPT * this.#speed.ms + now - this.#since,
      characters: KEPT * this.#speed.characters + characters,
    };
    this.#since = now;
  }

  #refusal(characters: number): AssayError {
    const now = this.#now();
    const inFront = Math.max(now + this.#msOf(this.#characters), this.#bookedUntil);
    this.#bookedUntil = Math.min(inFront + this.#msOf(characters), now + LONGEST_HONEST_WAIT_MS);
    const waitMs = inFront - now < LONGEST_HONEST_WAIT_MS ? inFront - now : this.#spreadWaitMs();
    return new AssayError('overloaded', 'Too many requests are waiting. Try again later.', {
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
    });
  }

  #spreadWaitMs(): number {
    return LONGEST_HONEST_WAIT_MS * (1 + ((this.#spread++ * GOLDEN_RATIO) % 1));
  }

  #msOf(characters: number): number {
    return (characters * this.#speed.ms) / this.#speed.characters;
  }
}

/** Characters of all texts in a request, keys of objects among them: what a request's work is measured by before its tokens are known. */
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
