import { AssayError } from '../../../lib/errors.ts';
import type { Box } from '../boxes/box.ts';
import type { Outcome } from '../boxes/fleet.ts';
import { BoxFault, unreachable } from './box-fault.ts';

/** A first box and at most two more. */
const MOST_BOXES = 3;

/** One request at one box, from its beginning to its one end. */
export interface Visit<T> {
  saw(piece: T): void;
  end(outcome: Outcome, error?: unknown): void;
}

export interface Tries<T> {
  visit(box: Box): Visit<T>;
  /** What the box says, in pieces. */
  ask(box: Box): AsyncIterable<T>;
  /** Pieces after which no other box may be asked: the caller has a part of the answer. */
  isOutput(piece: T): boolean;
  /** The piece with which the answer is whole: a caller who stops there has not left. */
  isLast(piece: T): boolean;
}

/**
 * What the first box that can answer says. The next one is tried after a `BoxFault`, at most twice, and never after output.
 * Throws `AssayError` alone, or the reason for which the caller's signal was aborted.
 */
export async function* tryBoxes<T>(candidates: readonly Box[], tries: Tries<T>): AsyncGenerator<T> {
  const faults: BoxFault[] = [];
  for (const box of candidates.slice(0, MOST_BOXES)) {
    const visit = tries.visit(box);
    let output = false;
    let ending: [Outcome, unknown?] = ['left'];
    try {
      for await (const piece of tries.ask(box)) {
        visit.saw(piece);
        output ||= tries.isOutput(piece);
        if (tries.isLast(piece)) ending = ['answered'];
        yield piece;
      }
      return;
    } catch (error) {
      ending = [outcome(error), error];
      if (!(error instanceof BoxFault)) throw error;
      if (output) throw error.error;
      faults.push(error);
    } finally {
      visit.end(...ending);
    }
  }
  throw verdict(faults);
}

/** A request's own fault is an answer; a deadline speaks against the box; anything else is a caller who left. */
function outcome(error: unknown): Outcome {
  if (error instanceof BoxFault) return error.broken ? 'failed' : 'answered';
  if (!(error instanceof AssayError)) return 'left';
  return error.code === 'timeout' ? 'failed' : 'answered';
}

/**
 * What the caller is told when no box answered. A busy box will have time again, so `overloaded` with the shortest wait goes
 * before what is wrong with the others.
 */
export function verdict(faults: readonly BoxFault[]): AssayError {
  const errors = faults.map(({ error }) => error);
  const [soonest] = errors
    .filter(({ code }) => code === 'overloaded')
    .sort((a, b) => (a.retryAfterSeconds ?? 1) - (b.retryAfterSeconds ?? 1));
  const known = errors.find(({ code }) => code !== 'backend_unreachable');
  return soonest ?? known ?? errors[0] ?? unreachable(new Error('every breaker is open')).error;
}
