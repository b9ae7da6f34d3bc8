import { Random } from '../../runtime/engine/random.ts';
import { AUDIO, STARTER, VISION } from './request.ts';

/** Faults that begin at a time of the run. */
export const TIMED_FAULTS = ['kill', 'kill media', 'stop', 'fill disk', 'cut hub', 'clock', 'memory'] as const;
export type TimedFault = (typeof TIMED_FAULTS)[number];

/** Everything about a run that its seed decides. Timing still differs between machines. */
export interface Plan {
  seed: number;
  clients: number;
  /** The model that most requests are for. */
  model: string;
  /** Milliseconds of load. */
  loadMs: number;
  /** Descriptors that the server process may have (`ulimit -n`); null: the system's limit. */
  descriptors: number | null;
  /** False: nobody reads the server's log. */
  logRead: boolean;
  faults: readonly { atMs: number; fault: TimedFault; forMs: number }[];
}

/** Longest time that one fault lasts, in milliseconds. */
const FAULT_MS = 5_000;

export function planOf(seed: number, seconds: number): Plan {
  const random = new Random(seed);
  const loadMs = seconds * 1000;
  const clients = 8 + Math.floor(random.uniform() * 57);
  const descriptors = random.uniform() < 0.25 ? 128 : null;
  const logRead = random.uniform() >= 0.25;
  const faults = Array.from({ length: 1 + Math.floor(random.uniform() * 4) }, () => ({
    atMs: Math.round(random.uniform() * 0.8 * loadMs),
    fault: TIMED_FAULTS[Math.floor(random.uniform() * TIMED_FAULTS.length)] ?? 'kill',
    forMs: Math.round(Math.min(FAULT_MS, loadMs)),
  }));
  const model = [STARTER, VISION, VISION, AUDIO][Math.floor(random.uniform() * 4)] ?? STARTER;
  return { seed, clients, model, loadMs, descriptors, logRead, faults: faults.sort((a, b) => a.atMs - b.atMs) };
}

export function describePlan({ clients, model, descriptors, logRead, faults }: Plan): string {
  const limits = [descriptors && `${descriptors} descriptors`, !logRead && 'log unread'].filter(Boolean);
  const timed = faults.map(({ atMs, fault }) => `${fault} at ${(atMs / 1000).toFixed(1)} s`);
  return [`${clients} clients of ${model}`, ...limits, ...timed].join(', ');
}
