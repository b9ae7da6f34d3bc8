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
  /** A model beside it, that half of the clients ask; null: all ask `model`. */
  secondModel: string | null;
  /** True if half of the clients have another key. */
  twoKeys: boolean;
  /** Milliseconds of load. */
  loadMs: number;
  /** Descriptors that the server process may have (`ulimit -n`); null: the system's limit. */
  descriptors: number | null;
  /** False: nobody reads the server's log. */
  logRead: boolean;
  faults: readonly { atMs: number; fault: TimedFault; forMs: number }[];
}

/** Longest time that one fault lasts, in milliseconds, but for `stop`. */
const FAULT_MS = 5_000;
const MODELS = [STARTER, VISION, VISION, AUDIO];

/** Makes the plan of a seed. Stopped processes go on after `stopMs`. */
export function planOf(seed: number, seconds: number, stopMs: number): Plan {
  const random = new Random(seed);
  const loadMs = seconds * 1000;
  const clients = 8 + Math.floor(random.uniform() * 57);
  const descriptors = random.uniform() < 0.25 ? 128 : null;
  const logRead = random.uniform() >= 0.25;
  const faults = Array.from({ length: 1 + Math.floor(random.uniform() * 4) }, () => {
    const atMs = Math.round(random.uniform() * 0.8 * loadMs);
    const fault = TIMED_FAULTS[Math.floor(random.uniform() * TIMED_FAULTS.length)] ?? 'kill';
    return { atMs, fault, forMs: fault === 'stop' ? stopMs : Math.round(Math.min(FAULT_MS, loadMs)) };
  });
  faults.sort((a, b) => a.atMs - b.atMs);
  const model = MODELS[Math.floor(random.uniform() * MODELS.length)] ?? STARTER;
  const twoKeys = random.uniform() < 0.5;
  const other = MODELS[Math.floor(random.uniform() * MODELS.length)] ?? STARTER;
  const secondModel = other === model ? null : other;
  return { seed, clients, model, secondModel, twoKeys, loadMs, descriptors, logRead, faults };
}

export function describePlan({ clients, model, secondModel, twoKeys, descriptors, logRead, faults }: Plan): string {
  const limits = [
    secondModel && `and ${secondModel}`,
    twoKeys && 'two keys',
    descriptors && `${descriptors} descriptors`,
    !logRead && 'log unread',
  ].filter(Boolean);
  const timed = faults.map(({ atMs, fault }) => `${fault} at ${(atMs / 1000).toFixed(1)} s`);
  return [`${clients} clients of ${model}`, ...limits, ...timed].join(', ');
}
