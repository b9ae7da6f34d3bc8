/** First file descriptor that systemd passes to a service. Source: sd_listen_fds(3). */
const FIRST_DESCRIPTOR = 3;

/**
 * Returns the descriptor of the socket that systemd opened for the process `pid`, the first if there are several; null
 * if there is none. Removes systemd's variables `LISTEN_*` from `env`, because a child process would take the socket
 * for its own.
 */
export function takeActivatedSocket(env: Record<string, string | undefined>, pid: number): number | null {
  const { LISTEN_PID, LISTEN_FDS } = env;
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[name];
  return LISTEN_PID === String(pid) && Number(LISTEN_FDS) >= 1 ? FIRST_DESCRIPTOR : null;
}
