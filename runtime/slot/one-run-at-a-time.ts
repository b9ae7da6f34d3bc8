/**
 * Wraps an operation so that it runs at most once at a time, whatever the number of callers. Callers that come during a
 * run share the next one, so a result is never older than the call.
 */
export function oneRunAtATime<T>(operation: () => Promise<T>): () => Promise<T> {
  /** Settles when the run under way has ended; null if there is none. */
  let running: Promise<void> | null = null;
  let next: Promise<T> | null = null;
  function start(): Promise<T> {
    next = null;
    const run = operation();
    const end = () => {
      running = null;
    };
    running = run.then(end, end);
    return run;
  }
  return () => {
    if (!running) return next ?? start();
    next ??= running.then(start);
    return next;
  };
}
