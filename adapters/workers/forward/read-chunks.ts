import type { Clock } from '../../../lib/clock.ts';
import { AssayError } from '../../../lib/errors.ts';
import { timedOut } from './upstream-client.ts';
import { UpstreamFault, unreachable } from './upstream-fault.ts';

export interface ReadChunksDeps {
  clock: Clock;
  /**
   * Milliseconds without a byte after which an upstream counts as hung, which is noticed after one to two times as
   * long. A working one sends a comment of the event stream every second or two.
   */
  silenceMs: number;
  /** Signal that aborts when the caller leaves. An error of the stream after that is not the upstream's fault. */
  signal: AbortSignal;
}

/**
 * Yields the chunks of a stream as they arrive. Throws `UpstreamFault` if the stream breaks, also because the caller
 * read it too slowly, or falls silent, and the reason of `signal` if that has aborted. If the reader stops early,
 * cancels the stream, which stops the upstream's work.
 */
export async function* readChunks(body: ReadableStream<Uint8Array>, deps: ReadChunksDeps): AsyncGenerator<Uint8Array> {
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

/** Returns the error for a caller that read so slowly that the upstream ended the stream. */
function readTooSlowly(cause: unknown): AssayError {
  return new AssayError('timeout', 'The answer was read too slowly, so the box ended it. Read events as they arrive.', {
    cause,
  });
}
