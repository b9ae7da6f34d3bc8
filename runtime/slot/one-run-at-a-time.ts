/**
 * Wraps an operation so that it runs at most once at a time, whatever the number of callers. A caller that comes
 * during a run waits for the next one, which all such callers share: a result never is older than the call.
 */
export function oneRunAtATime<T>(operation: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | null = null;
  let next: Promise<T> | null = null;
  function start(): Promise<T> {
    const run = operation();
    const ended = run.then(
      () => {},
      () => {},
    );
    running = ended;
    void ended.then(() => {
      if (running === ended) running = null;
    });
    return run;
  }
  return () => {
    if (!running) return next ?? start();
    next ??= running.then(() => {
      next = null;
      return start();
    });
    return next;
  };
}
