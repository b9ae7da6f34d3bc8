import type { Logger } from 'pino';
import type { InferenceBackend } from '../../lib/backend.ts';
import type { ModelHost } from '../../lib/host.ts';
import type { ServerConfig } from './config.ts';

/** What the server runs on. */
export interface Parts {
  backend: InferenceBackend;
  host: ModelHost;
  /** Answers `GET /metrics`. */
  metrics: () => Promise<Response>;
  /** Ends the engine process and lets go of all files; what runs is aborted. */
  close(): Promise<void>;
}

/** Puts the engine, the store and the slot together. */
export async function compose(_config: Pick<ServerConfig, 'home'>, _log: Logger): Promise<Parts> {
  throw new Error('There is no engine in this build yet.');
}
