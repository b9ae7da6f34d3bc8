import { AssayError } from '../../../lib/errors.ts';
import type { Outcome } from '../upstreams/fleet.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { UpstreamFault, unreachable } from './upstream-fault.ts';

/** Largest number of upstreams that are tried for one request. */
const MOST_UPSTREAMS = 3;
/**
 * Largest number of upstreams that may fail on one request. The request itself may be the cause, and must not take down
 * one upstream after the other (a "query of death").
 */
const MOST_FAILED = 2;
/**
 * Milliseconds after which an upstream that cannot be reached counts as failed on the request: one that is down refuses
 * connections sooner.
 */
const REACHED_AFTER_MS = 1_000;

/** Records one attempt at one upstream. `saw` is called for each chunk, and then `end` exactly once. */
export interface Attempt<T> {
  saw(chunk: T): void;
  end(outcome: Outcome, error?: unknown): void;
}

export interface Tries<T> {
  budget: RetryBudget;
  /** Returns milliseconds of any clock. */
  now(): number;
  /** Begins the record of an attempt. */
  attempt(upstream: Upstream): Attempt<T>;
  /** Sends the request to the upstream and yields its answer in chunks. */
  ask(upstream: Upstream): AsyncIterable<T>;
  /** Tells whether this chunk has a part of the answer. After such a chunk no other upstream may be tried. */
  isOutput(chunk: T): boolean;
  /** Tells whether this chunk completes the answer. A caller that stops reading earlier counts as having left. */
  isLast(chunk: T): boolean;
}

/**
 * Yields the answer of the first upstream that can answer. After an `UpstreamFault`, tries the next upstream, up to
 * `MOST_UPSTREAMS` in all, unless the caller already has a part of the answer; then throws the fault's `error`. If no
 * upstream answers, throws the error of `verdict`. After `MOST_FAILED` upstreams failed while they had the request,
 * throws an error that says so. A retry after a broken upstream needs a retry of the budget. Any other error of `ask`
 * ends the tries and is thrown.
 */
export async function* tryUpstreams<T>(candidates: readonly Upstream[], tries: Tries<T>): AsyncGenerator<T> {
  const faults: UpstreamFault[] = [];
  let failed = 0;
  tries.budget.add();
  for (const upstream of candidates.slice(0, MOST_UPSTREAMS)) {
    if (faults.at(-1)?.broken && !tries.budget.take()) break;
    const attempt = tries.attempt(upstream);
    const begin = tries.now();
    let output = false;
    let ending: [Outcome, unknown?] = ['left'];
    try {
      for await (const chunk of tries.ask(upstream)) {
        attempt.saw(chunk);
        output ||= tries.isOutput(chunk);
        if (tries.isLast(chunk)) ending = ['answered'];
        yield chunk;
      }
      return;
    } catch (error) {
      ending = [outcome(error), error];
      if (!(error instanceof UpstreamFault)) throw error;
      if (output) throw error.error;
      faults.push(error);
      if (hadRequest(error, tries.now() - begin) && ++failed >= MOST_FAILED) throw refusedForDeaths(failed, error);
    } finally {
      attempt.end(...ending);
    }
  }
  throw verdict(faults);
}

/** Tells whether an upstream failed while it had the request, `ms` milliseconds after the request was sent. */
function hadRequest({ broken, error }: UpstreamFault, ms: number): boolean {
  return broken && (error.code !== 'backend_unreachable' || ms >= REACHED_AFTER_MS);
}

function refusedForDeaths(count: number, cause: unknown): AssayError {
  const message = `${count} boxes failed one after the other while they had this request, so it is not tried on another one. It may be the cause: send fewer or shorter tasks, and report it with its x-request-id.`;
  return new AssayError('engine_failed', message, { cause });
}

/**
 * Returns the outcome of an attempt that threw. An error that the upstream reports about the request counts as an
 * answer, and anything that is no error of the interface means that the caller left.
 */
function outcome(error: unknown): Outcome {
  if (error instanceof UpstreamFault) return error.broken ? 'failed' : 'answered';
  if (!(error instanceof AssayError)) return 'left';
  return error.code === 'timeout' ? 'late' : 'answered';
}

/**
 * Returns the error for the caller if no upstream has answered: of these faults, `overloaded` with the shortest wait,
 * because a retry can succeed; otherwise the first that is not `backend_unreachable`; otherwise `backend_unreachable`.
 */
export function verdict(faults: readonly UpstreamFault[]): AssayError {
  const errors = faults.map(({ error }) => error);
  const [soonest] = errors
    .filter(({ code }) => code === 'overloaded')
    .sort((a, b) => (a.retryAfterSeconds ?? 1) - (b.retryAfterSeconds ?? 1));
  const known = errors.find(({ code }) => code !== 'backend_unreachable');
  return soonest ?? known ?? errors[0] ?? unreachable(new Error('every breaker is open')).error;
}

/** Retries that each request adds to the budget: in the long run one of five requests may be retried. */
const RETRIES_PER_REQUEST = 0.2;
/** Maximum number of retries that the budget holds. It begins full, so a fault in a quiet fleet is retried. */
const MOST_RETRIES = 10;

/**
 * Bounds how many requests are tried again after an upstream failed. Without a bound, retries multiply the load just
 * when upstreams fail because of it (Envoy and Finagle bound them the same way).
 */
export class RetryBudget {
  #left = MOST_RETRIES;

  /** Records a new request. */
  add(): void {
    this.#left = Math.min(MOST_RETRIES, this.#left + RETRIES_PER_REQUEST);
  }

  /** Takes one retry. Returns false if none is left. */
  take(): boolean {
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
