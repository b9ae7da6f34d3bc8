import { readdir, readFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { extname, join } from 'node:path';
import { Duplex } from 'node:stream';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import * as zlib from 'node:zlib';
import { Hono } from 'hono';
import type { Logger } from 'pino';
import { createApp } from '../../handlers/app.ts';
import type { AppEnv, RequestRecord } from '../../handlers/context.ts';
import { errorResponse } from '../../handlers/error-response.ts';
import { guard } from '../../handlers/guard.ts';
import type { Pages, StaticPage } from '../../handlers/pages.ts';
import { systemClock } from '../../lib/clock.ts';
import { AssayError, messageOf } from '../../lib/errors.ts';
import { type BodyDecoders, STANDARD_DECODERS } from '../../lib/json/body.ts';
import { FairTurns } from '../../lib/limits/fair-turns.ts';
import { memoryQuota } from '../../lib/limits/quota.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { ModelHost } from '../../lib/models/host.ts';
import { modelFor } from '../../lib/models/recommended-models.ts';
import { accessOf, makeFirstKey } from './access.ts';
import { answerAsOwner, openBatches } from './batches/batch-service.ts';
import { BodyThread } from './body-thread.ts';
import type { compose as composeParts } from './compose.ts';
import type { ServerConfig } from './config.ts';
import {
  firstKeyMade,
  firstRequest,
  listening,
  nextModel,
  noKeyYet,
  offerModel,
  type Terminal,
} from './first-start.ts';
import { KeysStore } from './keys-file.ts';
import { requestLog } from './log.ts';
import { isLoopback } from './loopback.ts';
import { createServerMetrics, type ServerMetrics } from './metrics.ts';
import { type RunningServer, startServer } from './server.ts';
import { openNotify, takeActivatedSocket } from './service/systemd.ts';
import { openTracing } from './tracing/open-tracing.ts';

/** Default of `ServerConfig.shutdownDelay` if something asked whether the server is ready within the last minute. */
const BALANCED_DELAY_S = 5;
const PROBED_MS = 60_000;
/** Milliseconds that the end may take beyond `ServerConfig.shutdownDelay` and the drain. */
const ENDING_MS = 4_500;

/** Describes the side effects of `serve`, which the caller passes in. */
export interface ServeEffects {
  log: Logger;
  /** Prints lines for the person who started the server. */
  say(text: string): void;
  /**
   * True if `say` writes to a terminal. Only then is a first key created and shown: other output may be kept as a log.
   */
  terminal: boolean;
  /** Asks the person who started the server; absent if nobody can answer. */
  ask?: Terminal;
  compose: typeof composeParts;
}

/** Represents a server that `serve` has started. */
export interface Serving {
  url: string;
  /** Resolves when loading the first model has succeeded or failed; at once if no model is loaded at start. */
  loaded: Promise<unknown>;
  /**
   * Stops the server. It is not ready from now on. If `balanced` is true, because a load balancer may still send
   * requests, it takes them for `config.shutdownDelay`. Then it accepts no new connections, ends downloads,
   * compilations and loads, and gives running requests `config.drainSeconds`, and requests that are still arriving two
   * seconds, to finish; those that do not are answered with an error. Then it ends the engine. Resolves to false if it
   * ended some requests, or if anything else kept it for some seconds more.
   */
  stop(how?: { balanced?: boolean }): Promise<boolean>;
}

/**
 * Starts the server: keys, traces, engine and HTTP. Then loads the first models in the background, unless `config.load`
 * is false. If the server cannot start, throws an `Error` whose message says what to do.
 */
export async function serve(config: ServerConfig, effects: ServeEffects): Promise<Serving> {
  const { log, say, terminal, ask, compose } = effects;
  const filed = new KeysStore(config.home);
  const { firstKey, keyNamed, ...access } = await accessOf(config, filed, (text) => log.error(text));
  const tracing = await openTracing(process.env, log);
  const parts = await compose(config, log, tracing?.answered);
  const quota = memoryQuota(systemClock);
  const { backend, host } = parts;
  const metrics = createServerMetrics(parts.registry);
  const pages = await readPages();
  const questions = { confidence: config.confidence, abstainBelow: config.abstainBelow };
  const writeLine = requestLog(log);
  let stopping = false;
  let closeMetrics = async (): Promise<unknown> => undefined;
  let probedAt = Number.NEGATIVE_INFINITY;
  const checker = new BodyThread();
  const stuck = (batch: string, error: unknown) => log.error(`The batch ${batch} cannot go on: ${messageOf(error)}`);
  const batches = config.batches ? openBatches(join(config.home, 'batches'), systemClock, stuck) : undefined;
  const reading = { decoders: NODE_DECODERS, turn: turns(), checker };
  const shared = { ...access, ...reading, backend, host, questions, quota, aliases: new Set(config.alias) };
  const logRequest = (record: RequestRecord) => {
    writeLine(record);
    metrics.answered(record);
    tracing?.log(record);
  };
  const app = createApp({
    ...{ ...shared, pages, ...(batches ? { batches } : {}) },
    metrics: (app) => metrics.handle(app),
    beginTraces: tracing !== null,
    isStopping: () => stopping,
    probed: () => {
      probedAt = performance.now();
    },
    log: logRequest,
  });
  const opened: { close(): Promise<unknown> }[] = [
    ...(batches ? [batches] : []),
    parts,
    checker,
    ...(tracing ? [tracing] : []),
  ];
  try {
    const activated = takeActivatedSocket(process.env, process.pid);
    const server = await startServer(app.fetch, { ...config, activated });
    opened.unshift({ close: () => server.close(0) });
    const notify = openNotify(process.env, process.pid);
    notify.ready();
    batches?.start(answerAsOwner({ ...shared, log: logRequest }, keyNamed));
    metrics.watch(() => server.figures());
    if (config.metricsPort !== undefined) {
      const metricsServer = await serveMetrics(config, config.metricsPort, metrics);
      opened.unshift({ close: () => metricsServer.close(0) });
      closeMetrics = () => metricsServer.close(0);
      say(`Metrics, without a key: ${metricsServer.url}/metrics`);
    }
    say(listening(server.url, config));
    if (firstKey) say(terminal ? firstKeyMade(await makeFirstKey(filed)) : noKeyYet(config.home));
    const loaded = config.load ? loadFirst(config, host, say) : Promise.resolve(false);
    return {
      url: server.url,
      // Shows an example request once the model can answer it.
      loaded: loaded.then((ready) => {
        if (!ready || !firstKey) return;
        const [first = ''] = config.model;
        say(firstRequest(server.url, first));
        if (!config.model.every((id) => id.startsWith('assay/'))) return;
        const next = nextModel(totalmem());
        if (next) say(next);
        const offered = modelFor(totalmem(), 'decisions');
        if (ask && offered) void offerModel(offered, ask, { host, say });
      }),
      async stop({ balanced = false } = {}) {
        stopping = true;
        metrics.stopping();
        notify.stopping();
        server.endConnections();
        const probed = performance.now() - probedAt < PROBED_MS;
        const delayS = balanced ? (config.shutdownDelay ?? (probed ? BALANCED_DELAY_S : 0)) : 0;
        const end = async (): Promise<boolean> => {
          await batches?.stop();
          await systemClock.sleep(delayS * 1000);
          const [inTime] = await Promise.all([
            server.close(config.drainSeconds * 1000, () => parts.close()),
            parts.beginClose(),
          ]);
          await parts.close();
          await batches?.close();
          await closeMetrics();
          await tracing?.close();
          return inTime;
        };
        const ended = new AbortController();
        const late = async (): Promise<boolean> => {
          await systemClock.sleep((delayS + config.drainSeconds) * 1000 + ENDING_MS, ended.signal);
          if (!ended.signal.aborted) log.error('the server did not end in time: what it still did is broken off');
          return false;
        };
        return Promise.race([end(), late()]).finally(() => ended.abort());
      },
    };
  } catch (error) {
    for (const one of opened) await one.close();
    throw error;
  }
}

/** Serves `GET /metrics` alone, without a key. */
function serveMetrics(
  { host, metricsHost = host }: Pick<ServerConfig, 'host' | 'metricsHost'>,
  port: number,
  metrics: ServerMetrics,
): Promise<RunningServer> {
  const app = new Hono<AppEnv>();
  app.onError((error) => errorResponse(error, 'models'));
  app.use(guard({ loopbackOnly: isLoopback(metricsHost), allowOrigins: [] }));
  app.get('/metrics', (c) => metrics.handle({ bodyBytes: metrics.bodyBytes, accept: c.req.header('accept') }));
  app.notFound(() => errorResponse(new AssayError('route_not_found', 'This port has only GET /metrics.'), 'models'));
  return startServer(app.fetch, { host: metricsHost, port });
}

/**
 * Loads the models of the configuration, one after the other, and reports the results with `say`. The server already
 * answers other requests meanwhile, and continues without a model whose load fails. Resolves to true if the first one
 * is loaded.
 */
async function loadFirst(config: ServerConfig, host: ModelHost, say: (text: string) => void): Promise<boolean> {
  const loaded: boolean[] = [];
  for (const model of config.model) loaded.push(await loadAtStart(model, config, host, say));
  return loaded[0] === true;
}

async function loadAtStart(
  model: ModelId,
  { device: asked }: Pick<ServerConfig, 'device'>,
  host: ModelHost,
  say: (text: string) => void,
): Promise<boolean> {
  say(`Loading ${model} …`);
  try {
    const { device, load_ms, max_prompt_len: length, precision_warning: warning } = await host.load(model, {});
    say(
      `${model} is ready on the ${device} after ${(load_ms / 1000).toFixed(1)} s, for prompts up to ${length} tokens.`,
    );
    const unused = (host.active().devices ?? []).filter(({ used }) => !used);
    if (asked !== 'auto') for (const { device: other, reason } of unused) say(`The ${other} is not used. ${reason}`);
    if (warning) say(`Warning: ${warning}`);
    return true;
  } catch (error) {
    say(`${model} is not loaded. ${messageOf(error)}`);
    return false;
  }
}

/** Largest window of a zstd body, 8 MiB, as RFC 9659 prescribes: a frame may ask for gigabytes of memory. */
const ZSTD_WINDOW_LOG = 23;

const web = (stream: Duplex) => Duplex.toWeb(stream) as ReadableWritablePair<Uint8Array, Uint8Array>;

/** The content encodings that Node decodes. Node before 22.15 has no zstd. */
export const NODE_DECODERS: BodyDecoders = {
  ...('createZstdDecompress' in zlib && {
    zstd: () => web(zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } })),
  }),
  ...STANDARD_DECODERS,
  br: () => web(zlib.createBrotliDecompress()),
};

/**
 * Returns a function that gives callers turns for work which keeps the thread busy: one at a time, of the caller first
 * that has used least, with as much time between two of them as the first one's work took, for requests that have none.
 */
export function turns(): (caller: string) => Promise<void> {
  const turns = new FairTurns((ms) => (ms >= 1 ? setTimeout(ms) : undefined));
  return async (caller) => {
    // Reading a large body has taken its time, too.
    await setImmediate();
    await new Promise<void>((begin) => {
      void turns.run(caller, () => {
        begin();
        // The work runs in microtasks, and so ends before this.
        return setImmediate();
      });
    });
  };
}

/** Output folders of `npm run build:pages`: in a checkout, and in the published package. */
const FOLDERS = ['../../dist/pages', '../../pages'].map((path) => fileURLToPath(new URL(path, import.meta.url)));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
};

const ICON = '/playground/icon.svg';

/**
 * Reads the built web pages. Returns them by URL path; the map is empty if they were not built. The `index.html` of a
 * folder is at the folder's path. The icon is also at `/favicon.ico`, which browsers request for documents that name no
 * icon, such as `/openapi.json`.
 */
async function readPages(): Promise<Pages> {
  for (const folder of FOLDERS) {
    const pages = await pagesOf(folder);
    const icon = pages.get(ICON);
    if (pages.size > 0) return icon ? new Map([...pages, ['/favicon.ico', icon]]) : pages;
  }
  return new Map();
}

async function pagesOf(folder: string): Promise<Pages> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const read = files.map(async (file): Promise<[string, StaticPage]> => {
    const path = `/${file.slice(folder.length + 1).replaceAll('\\', '/')}`;
    const contentType = TYPES[extname(file)] ?? 'application/octet-stream';
    return [path.replace(/\/index\.html$/, ''), { contentType, body: new Uint8Array(await readFile(file)) }];
  });
  return new Map(await Promise.all(read));
}
