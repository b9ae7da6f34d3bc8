import { describe, expect, it } from 'vitest';
import { afterFailure, afterProbe, afterSuccess, BREAKER, type Breaker, breakerState, NEW_BREAKER } from './breaker.ts';

const { failuresToOpen, pauseMs, maxPauseMs } = BREAKER;

function failed(times: number, now: number, breaker: Breaker = NEW_BREAKER): Breaker {
  return times === 0 ? breaker : failed(times - 1, now, afterFailure(breaker, now));
}

describe('breaker', () => {
  it('opens after failures in a row, not before', () => {
    expect(breakerState(failed(failuresToOpen - 1, 0), 0)).toBe('closed');
    expect(breakerState(failed(failuresToOpen, 0), 0)).toBe('open');
  });

  it('starts to count again after an answer', () => {
    expect(afterSuccess()).toEqual(NEW_BREAKER);
  });

  it('is half open when its pause is over', () => {
    const breaker = failed(failuresToOpen, 1_000);
    expect(breakerState(breaker, 1_000 + pauseMs - 1)).toBe('open');
    expect(breakerState(breaker, 1_000 + pauseMs)).toBe('half-open');
  });

  it('doubles the pause with each failed trial, up to the longest', () => {
    let breaker = failed(failuresToOpen, 0);
    const pauses: number[] = [];
    for (let i = 0; i < 6; i++) {
      const now = breaker.opensUntil!;
      breaker = afterFailure(breaker, now);
      pauses.push(breaker.opensUntil! - now);
    }
    expect(pauses).toEqual([10_000, 20_000, 40_000, maxPauseMs, maxPauseMs, maxPauseMs]);
  });

  it('does not count failures that arrive while it is open', () => {
    const breaker = failed(failuresToOpen, 0);
    expect(afterFailure(breaker, 1)).toEqual(breaker);
  });

  it('is closed by a probe only when half open, and one more failure opens it again for longer', () => {
    const breaker = failed(failuresToOpen, 0);
    expect(afterProbe(breaker, 1)).toBe(breaker);
    const probed = afterProbe(breaker, pauseMs);
    expect(breakerState(probed, pauseMs)).toBe('closed');
    const again = afterFailure(probed, pauseMs);
    expect(again.opensUntil).toBe(pauseMs + 2 * pauseMs);
  });

  it('keeps the failures of a closed box after a probe', () => {
    const breaker = failed(failuresToOpen - 1, 0);
    expect(afterProbe(breaker, 1)).toBe(breaker);
  });
});
