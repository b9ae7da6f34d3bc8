import { setTimeout as sleep } from 'node:timers/promises';
import type { Asked, Kind } from './requests.ts';
import { KEY } from './server.ts';

export interface Outcome {
  kind: Kind | 'health' | 'bad key' | 'bad body';
  /** 0: the connection failed. */
  status: number;
  ms: number;
}

/** Between two probes of a kind. */
const PROBE_EVERY_MS = 50;
/** A client that was refused comes back when it was told to, and at the latest then. */
const LONGEST_WAIT_MS = 5_000;

/**
 * So many clients for so long: each sends its next request when it has its answer, or, refused with 429 or 503, after the time that the
 * server names. Beside them one caller at a time asks for `/health`, with a wrong key, and with a body that is no request.
 */
export async function load(url: string, clients: number, ms: number, next: () => Asked): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const end = performance.now() + ms;
  const client = async () => {
    while (performance.now() < end) {
      const { kind, path, body } = next();
      const { status, retryAfterMs, ...rest } = await call(`${url}${path}`, KEY, body);
      outcomes.push({ kind, status, ...rest });
      if (status === 0) await sleep(100);
      if (retryAfterMs > 0) await sleep(Math.min(retryAfterMs, LONGEST_WAIT_MS, Math.max(0, end - performance.now())));
    }
  };
  const probe = async (kind: Outcome['kind'], ask: () => ReturnType<typeof call>) => {
    while (performance.now() < end) {
      const { status, ms } = await ask();
      outcomes.push({ kind, status, ms });
      await sleep(PROBE_EVERY_MS);
    }
  };
  await Promise.all([
    ...Array.from({ length: clients }, client),
    probe('health', () => call(`${url}/health`)),
    probe('bad key', () => call(`${url}/v1/tasks`, 'wrong', '{}')),
    probe('bad body', () => call(`${url}/v1/tasks`, KEY, '{"model":"assay/starter"}')),
  ]);
  return outcomes;
}

/** Milliseconds until the last byte of the answer. */
async function call(url: string, key?: string, body?: string) {
  const began = performance.now();
  try {
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) },
      ...(body === undefined ? {} : { body }),
    });
    await response.arrayBuffer();
    const retryAfterMs = 1000 * Number(response.headers.get('retry-after') ?? 0);
    return { status: response.status, ms: performance.now() - began, retryAfterMs };
  } catch {
    return { status: 0, ms: performance.now() - began, retryAfterMs: 0 };
  }
}
