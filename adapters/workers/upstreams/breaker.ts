/** Records the failures of one upstream. Circuit breaker after Nygard, "Release It!", chapter 5. */
export interface Breaker {
  /** Failures since the last answer. */
  readonly failures: number;
  /** Openings since the last answer; each doubles the pause. */
  readonly openings: number;
  /** The time of the first trial, in milliseconds since 1970; null: closed. */
  readonly opensUntil: number | null;
}

/** Lists the states of a breaker. `closed`: in use. `open`: not asked. `half-open`: one trial decides. */
export type BreakerState = 'closed' | 'open' | 'half-open';

export interface BreakerSettings {
  /** Consecutive failures that open it. */
  failuresToOpen: number;
  /** The first pause, and the longest. */
  pauseMs: number;
  maxPauseMs: number;
}

export const BREAKER: BreakerSettings = { failuresToOpen: 3, pauseMs: 5_000, maxPauseMs: 60_000 };

export const NEW_BREAKER: Breaker = { failures: 0, openings: 0, opensUntil: null };

export function breakerState(breaker: Breaker, now: number): BreakerState {
  if (breaker.opensUntil === null) return 'closed';
  return now < breaker.opensUntil ? 'open' : 'half-open';
}

/** Returns the state after the upstream answered a request. */
export function afterSuccess(): Breaker {
  return NEW_BREAKER;
}

/** Returns the state after the upstream failed a request or a probe. */
export function afterFailure(breaker: Breaker, now: number, settings = BREAKER): Breaker {
  const failures = breaker.failures + 1;
  const state = breakerState(breaker, now);
  // Requests that were running when it opened bring no news.
  if (state === 'open') return breaker;
  if (state === 'closed' && failures < settings.failuresToOpen) return { ...breaker, failures };
  const pause = Math.min(settings.pauseMs * 2 ** breaker.openings, settings.maxPauseMs);
  return { failures, openings: breaker.openings + 1, opensUntil: now + pause };
}

/**
 * Returns the state after the upstream answered a probe. That closes a half-open breaker, but does not reset it:
 * `/health` may work where inference does not, so failures and openings keep counting until a request is answered.
 */
export function afterProbe(breaker: Breaker, now: number, settings = BREAKER): Breaker {
  if (breakerState(breaker, now) !== 'half-open') return breaker;
  return { ...breaker, failures: settings.failuresToOpen - 1, opensUntil: null };
}
