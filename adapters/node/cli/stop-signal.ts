/**
 * Milliseconds after the first signal in which a second one is ignored: npm forwards the Ctrl-C that the terminal has
 * already sent to this process.
 */
const ECHO_MS = 500;

/**
 * Resolves to the first Ctrl-C or SIGTERM. A second one ends the process at once, with exit code 1. Call it before the
 * command says that it is ready: a signal that comes before this call kills the process.
 */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first = Number.POSITIVE_INFINITY;
    const stop = (signal: NodeJS.Signals) => {
      if (performance.now() - first > ECHO_MS) process.exit(1);
      first = Math.min(first, performance.now());
      resolve(signal);
    };
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop);
  });
}
