import { startServer } from '../../adapters/node/server.ts';
import { createApp } from '../../handlers/app.ts';
import { hashSecret, listedKeys } from '../../lib/keys.ts';
import { scriptedBackend } from '../scripted-backend/backend.ts';
import { scriptedHost } from '../scripted-backend/host.ts';
import type { Recorded, Script } from '../scripted-backend/script.ts';

export const BOX_KEY = 'key-of-the-box';

/** A real upstream on loopback: the Node server and every handler, with a script instead of an engine. */
export interface TestUpstream {
  name: string;
  url: string;
  /** The calls to its backend, without probes. Emptied by `play`. */
  recorded: Recorded[];
  /** Replaces its script. */
  play(script: Script): void;
  /** Cuts every connection and stops listening, like a killed process. */
  kill(): Promise<void>;
  /** Listens again on the same port. */
  restart(): Promise<void>;
}

export async function startUpstream(name: string, script: Script = {}): Promise<TestUpstream> {
  const recorded: Recorded[] = [];
  const keys = listedKeys([{ name: 'edge', models: ['*'], scopes: ['admin'], sha256: await hashSecret(BOX_KEY) }]);
  const appOf = (played: Script) =>
    createApp({
      backend: scriptedBackend(played, recorded),
      host: scriptedHost(played, recorded),
      keys,
      keyForModels: true,
      heartbeatMs: 200,
    });
  let app = appOf(script);
  const fetch = (request: Request) => app.fetch(request);
  let server = await startServer(fetch, { host: '127.0.0.1', port: 0 });
  const { url } = server;
  return {
    name,
    url,
    recorded,
    play(next) {
      recorded.length = 0;
      app = appOf(next);
    },
    async kill() {
      await server.close(0);
    },
    async restart() {
      server = await startServer(fetch, { host: '127.0.0.1', port: Number(new URL(url).port) });
    },
  };
}
