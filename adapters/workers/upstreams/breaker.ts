/** Holds the state of the circuit breaker of one upstream (Nygard, "Release It!", chapter 5). */
export interface Breaker {
  /** Number of failures since the upstream last answered a request; `afterProbe` may lower it. */
  readonly failures: number;
  /** Number of times that the breaker has opened since that answer; each time doubles the pause, up to `maxPauseMs`. */
  readonly openings: number;
  /** Time at which the upstream is tried again, in milliseconds since 1970 (UTC); null if the breaker is closed. */
  readonly opensUntil: number | null;
}

/**
 * Names a state of a breaker. `closed`: requests are sent to the upstream. `open`: none are sent. `half-open`: the
 * result of one trial request closes or opens the breaker.
 */
export type BreakerState = 'closed' | 'open' | 'half-open';

export interface BreakerSettings {
  /** Number of consecutive failures after which the breaker opens. */
  failuresToOpen: number;
  /** Milliseconds for which the breaker stays open the first time. */
  pauseMs: number;
  /** Longest time that the breaker stays open, in milliseconds. */
  maxPauseMs: number;
}

export const BREAKER: BreakerSettings = { failuresToOpen: 3, pauseMs: 5_000, maxPauseMs: 60_000 };

export const NEW_BREAKER: Breaker = { failures: 0, openings: 0, opensUntil: null };

/** Returns the state of a breaker at the time `now`, in milliseconds since 1970 (UTC). */
export function breakerState(breaker: Breaker, now: number): BreakerState {
  if (breaker.opensUntil === null) return 'closed';
  return now < breaker.opensUntil ? 'open' : 'half-open';
}

/** Returns the breaker after the upstream answered a request. */
export function afterSuccess(): Breaker {
  return NEW_BREAKER;
}

/**
 * Returns the breaker after a request to the upstream, or a health probe, failed; unchanged while it is open. `now` is
 * in milliseconds since 1970 (UTC).
 */
export function afterFailure(breaker: Breaker, now: number, settings = BREAKER): Breaker {
  const failures = breaker.failures + 1;
  const state = breakerState(breaker, now);
  // Ignores the failure of a request that was sent before the breaker opened.
  if (state === 'open') return breaker;
  if (state === 'closed' && failures < settings.failuresToOpen) return { ...breaker, failures };
  const pause = Math.min(settings.pauseMs * 2 ** breaker.openings, settings.maxPauseMs);
  return { failures, openings: breaker.openings + 1, opensUntil: now + pause };
}

/**
 * Returns the breaker after the upstream answered a health probe. The probe closes a half-open breaker, but the
 * next failure opens it again, because `/health` may work although inference does not. Only an answered request resets
 * the counts.
 */
export function afterProbe(breaker: Breaker, now: number, settings = BREAKER): Breaker {
  if (breakerState(breaker, now) !== 'half-open') return breaker;
  return { ...breaker, failures: settings.failuresToOpen - 1, opensUntil: null };
}
