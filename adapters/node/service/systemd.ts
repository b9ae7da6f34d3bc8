import { execFile } from 'node:child_process';

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

/** Reports the state of the server to systemd. */
interface Notify {
  /** Reports that the server listens. From now on, systemd's watchdog hears of it as long as the event loop turns. */
  ready(): void;
  /** Reports that the server has begun to stop. */
  stopping(): void;
}

/** Counts how often the watchdog hears of the server within the time after which systemd restarts it. */
const TIMES = 3;

/**
 * Returns the connection to the systemd that started the process `pid` with these variables; one that does nothing if
 * none did. Runs systemd-notify(1), because Node has no datagram sockets in the file system. Source: sd_notify(3),
 * sd_watchdog_enabled(3).
 */
export function openNotify(env: Record<string, string | undefined>, pid: number): Notify {
  if (!env.NOTIFY_SOCKET) return { ready: () => undefined, stopping: () => undefined };
  const say = (state: string) => void execFile('systemd-notify', [state], { env }, () => undefined);
  const watched = env.WATCHDOG_USEC !== undefined && (env.WATCHDOG_PID ?? String(pid)) === String(pid);
  return {
    ready() {
      say('READY=1');
      if (watched) setInterval(() => say('WATCHDOG=1'), Number(env.WATCHDOG_USEC) / 1000 / TIMES).unref();
    },
    stopping: () => say('STOPPING=1'),
  };
}
