import type { Logger } from 'pino';
import { createApp } from '../../handlers/app.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ModelHost } from '../../lib/host.ts';
import { memoryQuota } from '../../lib/quota.ts';
import { accessOf, makeFirstKey } from './access.ts';
import type { compose as composeParts } from './compose.ts';
import type { ServerConfig } from './config.ts';
import { firstKeyMade, firstRequest, listening, noKeyYet } from './greeting.ts';
import { KeysStore } from './keys-file.ts';
import { requestLog } from './log.ts';
import { readPages } from './pages.ts';
import { startServer } from './server.ts';

/** How long requests in flight may go on after the server was told to stop. */
const GRACE_MS = 10_000;

export interface ServeEffects {
  log: Logger;
  /** Lines for the person who started it. */
  say(text: string): void;
  /** Whether `say` reaches a terminal. Only there is a first key made and shown; other output may be kept as a log. */
  terminal: boolean;
  compose: typeof composeParts;
}

export interface Serving {
  url: string;
  /** Ends when the model of the start is loaded, or is not. */
  loaded: Promise<unknown>;
  /** Stops in order: no new requests, those in flight, the engine. False where some had to be cut off. */
  stop(): Promise<boolean>;
}

/** The whole server: keys, engine, HTTP, and the model of the start. Throws an `Error` in plain words where it cannot start. */
export async function serve(config: ServerConfig, { log, say, terminal, compose }: ServeEffects): Promise<Serving> {
  const filed = new KeysStore(config.home);
  const { firstKey, ...access } = await accessOf(config, filed);
  const parts = await compose(config, log);
  const quota = memoryQuota(systemClock);
  const { backend, host, metrics } = parts;
  const pages = await readPages();
  const questions = { confidence: config.confidence, abstainBelow: config.abstainBelow };
  const app = createApp({ ...access, backend, host, metrics, pages, questions, quota, log: requestLog(log) });
  const opened: { close(): Promise<unknown> }[] = [parts];
  try {
    const server = await startServer(app.fetch, config);
    opened.unshift({ close: () => server.close(0) });
    say(listening(server.url, config));
    if (firstKey) say(terminal ? firstKeyMade(await makeFirstKey(filed)) : noKeyYet(config.home));
    const loaded = config.load ? loadFirst(config.model, host, say) : Promise.resolve(false);
    return {
      url: server.url,
      // Shown when it can be answered.
      loaded: loaded.then((ready) => ready && firstKey && say(firstRequest(server.url, config.model))),
      async stop() {
        const inTime = await server.close(GRACE_MS);
        await parts.close();
        return inTime;
      },
    };
  } catch (error) {
    for (const one of opened) await one.close();
    throw error;
  }
}

/** The server answers already while its model loads; where that fails, it goes on without one. Tells whether the model is there. */
async function loadFirst(model: ServerConfig['model'], host: ModelHost, say: (text: string) => void): Promise<boolean> {
  say(`Loading ${model} …`);
  try {
    const { device, load_ms } = await host.load(model, {});
    say(`${model} is ready on the ${device} after ${(load_ms / 1000).toFixed(1)} s.`);
    return true;
  } catch (error) {
    say(`${model} is not loaded. ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }
}
