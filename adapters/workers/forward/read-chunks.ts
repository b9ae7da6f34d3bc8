import type { Clock } from '../../../lib/clock.ts';
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
 * Yields the chunks of a stream as they arrive. Throws `UpstreamFault` if the stream breaks or falls silent. If the
 * reader stops early, cancels the stream, which stops the upstream's work.
 */
export async function* readChunks(body: ReadableStream<Uint8Array>, deps: PiecesDeps): AsyncGenerator<Uint8Array> {
  const { clock, silenceMs, signal } = deps;
  const reader = body.getReader();
  const ended = new AbortController();
  let heardAt = clock.now();
  let hung = false;
  // Uses one timer for the whole stream instead of one for each chunk, so silence is noticed after one to two
  // intervals.
  const watch = async () => {
    while (!ended.signal.aborted) {
      await clock.sleep(silenceMs, ended.signal);
      if (ended.signal.aborted || clock.now() - heardAt < silenceMs) continue;
      hung = true;
      // `cancel` is not awaited, here and below, because a hung upstream must not delay the caller.
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
