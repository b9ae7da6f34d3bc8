import type { Clock } from '../../../lib/clock.ts';
import { AssayError } from '../../../lib/errors.ts';
import { timedOut } from './upstream-client.ts';
import { UpstreamFault, unreachable } from './upstream-fault.ts';

export interface PiecesDeps {
  clock: Clock;
  /**
   * Milliseconds of silence after which an upstream counts as hung. A working one sends a comment every second or two.
   */
  silenceMs: number;
  /** Signal that aborts when the caller leaves. An error of the stream after that is not the upstream's fault. */
  signal: AbortSignal;
}

/**
 * Yields the chunks of a stream as they arrive. Throws `UpstreamFault` if the stream breaks or falls silent, and the
 * reason of `signal` if the caller has left. If the reader stops early, cancels the stream, which stops the upstream's
 * work.
 */
export async function* readChunks(body: ReadableStream<Uint8Array>, deps: PiecesDeps): AsyncGenerator<Uint8Array> {
  const { clock, silenceMs, signal } = deps;
  const reader = body.getReader();
  const ended = new AbortController();
  // A caller that reads slowly must not make a working upstream look hung: only the wait for a chunk counts.
  let waitingSince: number | null = null;
  let slowCaller = false;
  let hung = false;
  // Uses one timer for the whole stream instead of one for each chunk, so silence is noticed after one to two
  // intervals.
  const watch = async () => {
    while (!ended.signal.aborted) {
      await clock.sleep(silenceMs, ended.signal);
      if (ended.signal.aborted || waitingSince === null || clock.now() - waitingSince < silenceMs) continue;
      hung = true;
      // `cancel` is not awaited, here and below, because a hung upstream must not delay the caller.
      return void reader.cancel().catch(() => {});
    }
  };
  void watch();
  try {
    for (;;) {
      waitingSince = clock.now();
      const { done, value } = await reader.read();
      waitingSince = null;
      if (hung) throw new UpstreamFault(timedOut(silenceMs), true);
      if (done) return;
      const handedAt = clock.now();
      yield value;
      slowCaller = clock.now() - handedAt >= silenceMs;
    }
  } catch (error) {
    if (error instanceof UpstreamFault) throw error;
    if (signal.aborted) throw signal.reason;
    throw slowCaller ? new UpstreamFault(readTooSlowly(error), false) : unreachable(error);
  } finally {
    ended.abort();
    void reader.cancel().catch(() => {});
  }
}

/** Returns the error for a caller whose stream the upstream has ended, because it disconnects whoever does not read. */
function readTooSlowly(cause: unknown): AssayError {
  return new AssayError('timeout', 'The answer was read too slowly, so the box ended it. Read events as they arrive.', {
    cause,
  });
}
