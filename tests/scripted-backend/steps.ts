import { systemClock } from '../../lib/clock.ts';
import { AssayError } from '../../lib/errors.ts';
import type { Fault, Pause } from './script.ts';

export function throwFault(fault: Fault | undefined): void {
  if (!fault) return;
  if ('crash' in fault) throw new TypeError(fault.crash);
  const { code, message = `scripted ${code}`, ...details } = fault;
  throw new AssayError(code, message, details);
}

/** Waits as the script says; an abort rejects with its reason, as a real backend's work would. */
export async function pause(step: Pause | undefined, signal?: AbortSignal): Promise<void> {
  if (step?.waitMs === undefined) return;
  await systemClock.sleep(step.waitMs === 'forever' ? 2 ** 31 - 1 : step.waitMs, signal);
  signal?.throwIfAborted();
}
