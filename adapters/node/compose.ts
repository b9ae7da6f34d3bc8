import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { InferenceBackend } from '../../lib/backend.ts';
import type { Calibration } from '../../lib/calibration/calibration.ts';
import type { ModelHost } from '../../lib/host.ts';
import { createModelHost } from '../../runtime/slot/create-model-host.ts';
import { type Answered, createEngineBackend } from '../../runtime/supervisor/engine-backend.ts';
import { type Isolation, type IsolationMode, openIsolation } from '../../runtime/supervisor/isolation/isolation.ts';
import { createImageFetcher } from '../../runtime/supervisor/media/fetch-image.ts';
import { createMediaProcess } from '../../runtime/supervisor/media/media-process.ts';
import { createEngineMetrics } from '../../runtime/supervisor/metrics.ts';
import { createEngineProcess } from '../../runtime/supervisor/supervisor.ts';
import type { ServerConfig } from './config.ts';

/** Holds the parts of the server behind its HTTP handlers. */
export interface Parts {
  backend: InferenceBackend;
  host: ModelHost;
  /** Holds the metrics of the engine. */
  registry: Registry;
  /** Begins the shutdown: ends downloads, compilations and loads, which can be repeated. Running requests continue. */
  beginClose(): Promise<void>;
  /** Aborts all work that is still running, and ends the engine process and the media process. */
  close(): Promise<void>;
}

/** Timeout of a request in milliseconds, including its wait in the queue. */
const REQUEST_TIMEOUT_MS = 300_000;

/**
 * Creates the engine process, the media process, the model host and the backend. `onAnswered` is called after each
 * answered request, for traces. Throws `AssayError` `invalid_value` if `config.isolation` is `strict` and this machine
 * lacks a layer of isolation, or if a path needs a home folder and the account has none.
 */
export async function compose(
  config: Pick<
    ServerConfig,
    | 'home'
    | 'metricsNames'
    | 'device'
    | 'dtype'
    | 'precision'
    | 'chatMaxTokens'
    | 'orders'
    | 'isolation'
    | 'allowMediaHost'
    | 'longInput'
  >,
  log: Logger,
  onAnswered?: (answered: Answered) => void,
): Promise<Parts> {
  const isolation = await openIsolation(config.isolation);
  logIsolation(isolation, config.isolation, log);
  const engine = createEngineProcess({ log, isolation, onRestart: () => metrics.restarted() });
  const media = createMediaProcess({ log, isolation });
  const metrics = createEngineMetrics(() => engine.status(), calibration, config.metricsNames);
  const host = await createModelHost({ ...config, engine, log });
  async function calibration(): Promise<Calibration | null> {
    return (await host.calibration())?.calibration ?? null;
  }
  const timeoutMs = REQUEST_TIMEOUT_MS;
  // Prompts are private, so they are logged only if this variable asks for it.
  const logPrompts = process.env.ASSAY_LOG_PROMPTS === '1';
  const { chatMaxTokens, orders, allowMediaHost } = config;
  const backend = createEngineBackend({
    engine,
    models: host,
    media,
    fetcher: allowMediaHost.length > 0 ? createImageFetcher({ hosts: allowMediaHost }) : undefined,
    metrics,
    onAnswered,
    log,
    timeoutMs,
    chatMaxTokens,
    orders,
    calibration,
    logPrompts,
  });
  return {
    backend,
    host,
    registry: metrics.registry,
    async beginClose() {
      engine.beginClose();
      await host.close();
    },
    async close() {
      await host.close();
      await engine.close();
      media.close();
    },
  };
}

function logIsolation({ layers }: Isolation, mode: IsolationMode, log: Logger): void {
  const active = layers.filter((layer) => layer.active).map(({ name }) => name);
  const inactive = Object.fromEntries(layers.filter((layer) => !layer.active).map(({ name, why }) => [name, why]));
  if (mode === 'off') log.warn('isolation is off: models run with all rights of this user');
  else log.info({ active, inactive }, 'isolation of the processes that run models');
}
