import { processorMs } from './process-tree.ts';
import { SilenceClock } from './silence-clock.ts';

/** Number of checks within `limitMs`. */
const CHECKS = 20;
/** Delay of a check, in milliseconds, above which this process itself is assumed to have been suspended. */
const STALL_MS = 2_000;

/**
 * Watches a child process from which one answer is expected, and calls `onSilent` once if it counts as hung
 * (`SilenceClock.exceeds`). Returns a function that ends the watch.
 *
 * @param limitMs limit for `SilenceClock.exceeds`; the processor time is that of the process and its descendants
 */
export function watchSilence(pid: number | undefined, limitMs: number, onSilent: () => void): () => void {
  const silence = new SilenceClock(performance.now());
  const everyMs = limitMs / CHECKS;
  let lastCheckAt = performance.now();
  let checking = false;
  let ended = false;
  const timer = setInterval(() => void check(), everyMs);
  const end = () => {
    ended = true;
    clearInterval(timer);
  };

  async function check(): Promise<void> {
    // A starved machine may need longer than the interval to read the figures.
    if (checking) return;
    checking = true;
    const usedMs = await processorMs(pid);
    checking = false;
    if (ended) return;
    const now = performance.now();
    // A suspended process (a debugger, Ctrl-Z) has not read the child's answer yet, so the child was not silent.
    if (now - lastCheckAt > 2 * everyMs + STALL_MS) silence.heard(now);
    lastCheckAt = now;
    silence.read(now, usedMs);
    if (!silence.exceeds(limitMs, now)) return;
    end();
    onSilent();
  }
  return end;
}
