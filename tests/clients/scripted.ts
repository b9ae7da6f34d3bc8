import { type RunningServer, startServer } from '../../adapters/node/server.ts';
import { createApp } from '../../handlers/app.ts';
import { systemClock } from '../../lib/clock.ts';
import type { KeyStore } from '../../lib/keys.ts';
import { memoryQuota } from '../../lib/limits/quota.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { scriptedHost } from '../scripted-backend/host.ts';
import type { Recorded, Script } from '../scripted-backend/script.ts';

/** Starts the model server on a socket, with a scripted backend; with keys the decision service too. */
export async function serveScript(script: Script, keys?: KeyStore): Promise<RunningServer & { recorded: Recorded[] }> {
  const recorded: Recorded[] = [];
  const app = createApp({
    backend: scriptedBackend(script, recorded),
    host: scriptedHost(script, recorded),
    ...(keys ? { keys, quota: memoryQuota(systemClock) } : { apis: ['models'] }),
    guard: { loopbackOnly: true, allowOrigins: [] },
    heartbeatMs: 20,
  });
  return { ...(await startServer(app.fetch, { host: '127.0.0.1', port: 0 })), recorded };
}
