import { useCallback, useEffect, useState } from 'preact/hooks';
import { call } from './api.ts';

export interface Status {
  reachable: boolean;
  state: string;
  device: string;
  /** Id of the loaded model; empty if there is none. */
  model: string;
  running: number | null;
  waiting: number | null;
  /** Resident bytes of the engine process. */
  memory: number | null;
}

const UNKNOWN: Status = {
  reachable: false,
  state: 'unknown',
  device: '',
  model: '',
  running: null,
  waiting: null,
  memory: null,
};
const POLL_MS = 3_000;

/** Returns the server's state from `/health` and `/metrics`. Updates it every few seconds while the page is visible. */
export function useStatus(): { status: Status; refresh(): void } {
  const [status, setStatus] = useState(UNKNOWN);
  const refresh = useCallback(() => {
    read().then(setStatus, () => setStatus(UNKNOWN));
  }, []);
  useEffect(() => {
    refresh();
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') refresh();
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [refresh]);
  return { status, refresh };
}

async function read(): Promise<Status> {
  const health = await (await call('/health')).json();
  // The metrics may need a key (on an address other than loopback). Without it, only the rest of the line is shown.
  const metrics = await call('/metrics').then(
    (response) => response.text(),
    () => '',
  );
  const gauge = (name: string) => {
    const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics);
    return found ? Number(found[1]) : null;
  };
  return {
    reachable: true,
    state: health.state,
    device: health.device,
    model: health.active_model === 'none' ? '' : health.active_model,
    running: gauge('assay_requests_running'),
    waiting: gauge('assay_requests_waiting'),
    memory: gauge('assay_engine_resident_bytes'),
  };
}

export function StatusLine({ status }: { status: Status }) {
  const { reachable, state, device, model, running, waiting, memory } = status;
  if (!reachable) return <footer class="status">The server does not answer.</footer>;
  return (
    <footer class="status">
      <span class={`dot ${state}`} /> <span>{model === '' ? 'no model' : model}</span>
      <span>{state}</span>
      <span>{device}</span>
      {running !== null && (
        <span>
          {running} running, {waiting} waiting
        </span>
      )}
      {memory !== null && memory > 0 && <span>{Math.round(memory / 2 ** 20)} MiB</span>}
    </footer>
  );
}
