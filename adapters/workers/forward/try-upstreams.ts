import { AssayError } from '../../../lib/errors.ts';
import type { Outcome } from '../upstreams/fleet.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { UpstreamFault, unreachable } from './upstream-fault.ts';

/** A first upstream and at most two more. */
const MOST_UPSTREAMS = 3;

/** One request at one upstream, from its beginning to its one end. */
export interface Attempt<T> {
  saw(piece: T): void;
  end(outcome: Outcome, error?: unknown): void;
}

export interface Tries<T> {
  attempt(upstream: Upstream): Attempt<T>;
  /** What the upstream says, in pieces. */
  ask(upstream: Upstream): AsyncIterable<T>;
  /** Pieces after which no other upstream may be asked: the caller has a part of the answer. */
  isOutput(piece: T): boolean;
  /** The piece with which the answer is whole: a caller who stops there has not left. */
  isLast(piece: T): boolean;
}

/**
 * What the first upstream that can answer says. The next one is tried after an `UpstreamFault`, at most twice, and never after output.
 * Throws `AssayError` alone, or the reason for which the caller's signal was aborted.
 */
export async function* tryUpstreams<T>(candidates: readonly Upstream[], tries: Tries<T>): AsyncGenerator<T> {
  const faults: UpstreamFault[] = [];
  for (const upstream of candidates.slice(0, MOST_UPSTREAMS)) {
    const attempt = tries.attempt(upstream);
    let output = false;
    let ending: [Outcome, unknown?] = ['left'];
    try {
      for await (const piece of tries.ask(upstream)) {
        attempt.saw(piece);
        output ||= tries.isOutput(piece);
        if (tries.isLast(piece)) ending = ['answered'];
        yield piece;
      }
      return;
    } catch (error) {
      ending = [outcome(error), error];
      if (!(error instanceof UpstreamFault)) throw error;
      if (output) throw error.error;
      faults.push(error);
    } finally {
      attempt.end(...ending);
    }
  }
  throw verdict(faults);
}

/** A request's own fault is an answer; a deadline speaks against the upstream; anything else is a caller who left. */
function outcome(error: unknown): Outcome {
  if (error instanceof UpstreamFault) return error.broken ? 'failed' : 'answered';
  if (!(error instanceof AssayError)) return 'left';
  return error.code === 'timeout' ? 'failed' : 'answered';
}

/**
 * What the caller is told when no upstream answered. A busy upstream will have time again, so `overloaded` with the shortest wait goes
 * before what is wrong with the others.
 */
export function verdict(faults: readonly UpstreamFault[]): AssayError {
  const errors = faults.map(({ error }) => error);
  const [soonest] = errors
    .filter(({ code }) => code === 'overloaded')
    .sort((a, b) => (a.retryAfterSeconds ?? 1) - (b.retryAfterSeconds ?? 1));
  const known = errors.find(({ code }) => code !== 'backend_unreachable');
  return soonest ?? known ?? errors[0] ?? unreachable(new Error('every breaker is open')).error;
}
