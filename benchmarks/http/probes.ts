import { setTimeout as sleep } from 'node:timers/promises';
import { call } from './call.ts';
import { requestMix } from './requests.ts';
import { KEY } from './server.ts';

export const PROBES = ['health', 'bad key', 'bad body', 'work'] as const;

export interface Probe {
  kind: (typeof PROBES)[number];
  status: number;
  ms: number;
}

/** Milliseconds between two probes of the same kind. */
const EVERY_MS = 25;

/**
 * Sends probes until `signal` aborts or `ms` milliseconds have passed: a request to `/health`, one with a wrong key,
 * one with an invalid body, and an ordinary one, one at a time of each kind. This process is otherwise idle, so the
 * times do not include delays in a client that runs a thousand others.
 */
export async function probe(url: string, ms: number, signal: AbortSignal): Promise<Probe[]> {
  const request = await requestMix();
  const probes: Probe[] = [];
  const end = performance.now() + ms;
  let asked = 0;
  const ask: Record<Probe['kind'], () => ReturnType<typeof call>> = {
    health: () => call(`${url}/health`),
    'bad key': () => call(`${url}/v1/tasks`, 'wrong', '{}'),
    'bad body': () => call(`${url}/v1/tasks`, KEY, '{"model":"assay/starter"}'),
    work: () => {
      const { path, body } = request(asked++);
      return call(`${url}${path}`, KEY, body);
    },
  };
  const caller = async (kind: Probe['kind']) => {
    while (performance.now() < end && !signal.aborted) {
      const { status, ms } = await ask[kind]();
      probes.push({ kind, status, ms });
      await sleep(EVERY_MS);
    }
  };
  await Promise.all(PROBES.map(caller));
  return probes;
}
