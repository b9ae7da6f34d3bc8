import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { ModelCapabilities, ModelList } from '../../lib/schema/model-list.ts';
import type { Health } from '../../lib/schema/status.ts';
import { call, poll } from './api.ts';

/** Holds the server's state. Each member is null while it is not known. */
export interface Status {
  /** False if the server did not answer the last request. */
  reachable: boolean | null;
  health: Health | null;
  /** Number of requests that the engine is answering. */
  running: number | null;
  /** Number of requests in the queue. */
  waiting: number | null;
  /** Resident memory of the engine process in bytes. */
  memory: number | null;
}

const UNKNOWN: Status = { reachable: null, health: null, running: null, waiting: null, memory: null };
const POLL_MS = 3_000;

/**
 * Returns the server's state, read from `/health` and `/metrics` every `POLL_MS` milliseconds while the page is
 * visible, and a function that reads it at once.
 */
export function useStatus(): { status: Status; refresh(): void } {
  const [status, setStatus] = useState(UNKNOWN);
  // On a slow network, an answer may arrive after that to a later request.
  const requested = useRef(0);
  const shown = useRef(0);
  const refresh = useCallback(async () => {
    requested.current += 1;
    const request = requested.current;
    const read = await readStatus().catch(() => ({ ...UNKNOWN, reachable: false }));
    if (request < shown.current) return;
    shown.current = request;
    setStatus(read);
  }, []);
  useEffect(() => {
    const refreshIfVisible = () => {
      if (document.visibilityState === 'visible') void refresh();
    };
    void refresh();
    const timer = setInterval(refreshIfVisible, POLL_MS);
    document.addEventListener('visibilitychange', refreshIfVisible);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', refreshIfVisible);
    };
  }, [refresh]);
  return { status, refresh };
}

/** Returns what the loaded model can do; null while it is not known. `active` is its id, empty if there is none. */
export function useAbilities(active: string): ModelCapabilities | null {
  const [abilities, setAbilities] = useState<ModelCapabilities | null>(null);
  useEffect(() => {
    let current = true;
    setAbilities(null);
    if (active !== '') {
      void readAbilities(active).then(
        (read) => current && setAbilities(read),
        () => undefined,
      );
    }
    return () => {
      current = false;
    };
  }, [active]);
  return abilities;
}

async function readAbilities(active: string): Promise<ModelCapabilities | null> {
  const list: ModelList = await (await poll('/v1/models')).json();
  return list.data.find(({ id }) => id === active)?.capabilities ?? null;
}

async function readStatus(): Promise<Status> {
  // Needs no key, so a wrong one does not hide the state.
  const health = await (await call('/health', { key: '', signal: AbortSignal.timeout(10_000) })).json();
  // The metrics may need a key (on an address other than loopback).
  const metrics = await poll('/metrics').then(
    (response) => response.text(),
    () => '',
  );
  // One value for each model.
  const gauge = (name: string) => {
    const found = [...metrics.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))];
    return found.length > 0 ? found.reduce((sum, [, value]) => sum + Number(value), 0) : null;
  };
  return {
    reachable: true,
    health,
    running: gauge('assay_requests_running'),
    waiting: gauge('assay_requests_waiting'),
    memory: gauge('assay_engine_resident_bytes'),
  };
}
