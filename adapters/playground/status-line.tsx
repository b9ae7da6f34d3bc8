import type { Status } from './status.ts';

/** Shows the server's state at the bottom of the page. */
export function StatusLine({ status: { reachable, health, running, waiting, memory } }: { status: Status }) {
  if (reachable === false) {
    return (
      <footer class="status">
        <span class="dot error" /> <span>The server does not answer.</span>
      </footer>
    );
  }
  if (!health) return <footer class="status">Connecting…</footer>;
  const { state, device, active_model: model, reason } = health;
  return (
    <footer class="status">
      <span class={`dot ${state}`} /> <span>{model === 'none' ? 'no model' : model}</span>
      <span>{reason ? `${state}: ${reason}` : state}</span>
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
