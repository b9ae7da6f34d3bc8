import type { HostName } from './row.ts';
import type { Send } from './send.ts';

/** An environment that runs the stage: a call of `fetch`, a socket, workerd, or an edge before a server. */
export interface Host {
  name: HostName;
  send: Send;
  close(): Promise<void>;
}
