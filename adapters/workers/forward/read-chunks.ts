import type { Clock } from '../../../lib/clock.ts';
import { timedOut } from './upstream-client.ts';
import { UpstreamFault, unreachable } from './upstream-fault.ts';

export interface PiecesDeps {
  clock: Clock;
  /**
   * Milliseconds without a byte after which an upstream counts as hung. Upstreams send a comment every second or two.
   */
  silenceMs: number;
  /** The caller's abort signal. After it aborts, an error of the stream does not count against the upstream. */
  signal: AbortSignal;
}

/**
 * Yields the chunks of a stream as they arrive. Throws an `UpstreamFault` if it breaks or falls silent. Cancels it when
 * the reader stops, so that the upstream stops too.
 */
export async function* readChunks(body: ReadableStream<Uint8Array>, deps: PiecesDeps): AsyncGenerator<Uint8Array> {
  const { clock, silenceMs, signal } = deps;
  const reader = body.getReader();
  const ended = new AbortController();
  let heardAt = clock.now();
  let hung = false;
  // One timer for the stream, not one for each chunk: silence is noticed after one to two intervals.
  const watch = async () => {
    while (!ended.signal.aborted) {
      await clock.sleep(silenceMs, ended.signal);
      if (ended.signal.aborted || clock.now() - heardAt < silenceMs) continue;
      hung = true;
      // Not awaited, here and below: an upstream that hangs must not delay the caller.
      return void reader.cancel().catch(() => {});
    }
  };
  void watch();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (hung) throw new UpstreamFault(timedOut(silenceMs), true);
      if (done) return;
      heardAt = clock.now();
      yield value;
    }
  } catch (error) {
    if (error instanceof UpstreamFault) throw error;
    throw signal.aborted ? signal.reason : unreachable(error);
  } finally {
    ended.abort();
    void reader.cancel().catch(() => {});
  }
}
