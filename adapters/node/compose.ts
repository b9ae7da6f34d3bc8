import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { InferenceBackend } from '../../lib/backend.ts';
import type { ModelHost } from '../../lib/models/host.ts';
import { askModel, askSystemOne, escalating } from '../../lib/questions/escalation.ts';
import { availableMemory } from '../../runtime/device/hardware.ts';
import { createModelHost } from '../../runtime/registry/create-model-host.ts';
import type { MemorySettings } from '../../runtime/registry/memory-budget.ts';
import { Compiles } from '../../runtime/supervisor/children/compiles.ts';
import { type Answered, createEngineBackend } from '../../runtime/supervisor/engine-backend.ts';
import { type Isolation, type IsolationMode, openIsolation } from '../../runtime/supervisor/isolation/isolation.ts';
import { createImageFetcher } from '../../runtime/supervisor/media/fetch-image.ts';
import { MediaProcess } from '../../runtime/supervisor/media/media-process.ts';
import { createEngineMetrics } from '../../runtime/supervisor/metrics.ts';
import { Supervisor } from '../../runtime/supervisor/supervisor.ts';
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
  config: ServerConfig,
  log: Logger,
  onAnswered?: (answered: Answered) => void,
): Promise<Parts> {
  const isolation = await openIsolation(config.isolation);
  logIsolation(isolation, config.isolation, log);
  const processes = { log, isolation };
  const compiler = new Compiles(processes);
  const media = new MediaProcess(processes);
  const host = await createModelHost({
    ...config,
    memory: memoryOf(config),
    prefixes: config.cacheDir === undefined ? undefined : { dir: config.cacheDir, maxBytes: config.cacheSize },
    compiler,
    createEngine: (model) => new Supervisor({ ...processes, onRestart: () => metrics.restarted(model) }),
    log,
  });
  const metrics = createEngineMetrics(
    () => host.engines(),
    async (model) => (await host.calibration(model))?.calibration ?? null,
    config.metricsNames,
  );
  const timeoutMs = REQUEST_TIMEOUT_MS;
  // Prompts are private, so they are logged only if this variable asks for it.
  const logPrompts = process.env.ASSAY_LOG_PROMPTS === '1';
  const { chatMaxTokens, orders, allowMediaHost } = config;
  const backend = createEngineBackend({
    models: host,
    media,
    fetcher: allowMediaHost.length > 0 ? createImageFetcher({ hosts: allowMediaHost }) : undefined,
    metrics,
    onAnswered,
    log,
    timeoutMs,
    chatMaxTokens,
    orders,
    logPrompts,
    keepsQuestions: config.metricsQuestions,
  });
  return {
    backend: cascaded(backend, config),
    host,
    registry: metrics.registry,
    async beginClose() {
      compiler.abort();
      await host.beginClose();
    },
    async close() {
      compiler.abort();
      await host.close();
      media.close();
    },
  };
}

/** Timeout of the other server's answer in milliseconds. */
const ESCALATION_MS = 60_000;

/** Returns the backend, which asks uncertain questions again if `--escalate` says so. */
function cascaded(backend: InferenceBackend, { escalate, escalateBelow: below }: ServerConfig): InferenceBackend {
  if (escalate === undefined) return backend;
  if (!/^https?:/.test(escalate)) {
    return escalating(backend, { below, ask: askModel(backend, escalate) });
  }
  const upstream = { url: escalate, key: process.env.ASSAY_ESCALATE_KEY, fetch, timeoutMs: ESCALATION_MS };
  return escalating(backend, { below, ask: askSystemOne(upstream) });
}

/** Share of the machine's memory that models may have if several are loaded and `--memory` says nothing else. */
const MEMORY_SHARE = 0.8;

/** Returns the memory for several models; undefined if the server holds one, which a load replaces. */
function memoryOf({ model, memory, evict, loadOnDemand }: ServerConfig): MemorySettings | undefined {
  if (memory === undefined && model.length < 2 && !evict && !loadOnDemand) return undefined;
  return { budgetBytes: memory ?? MEMORY_SHARE * availableMemory(), evict };
}

function logIsolation({ layers }: Isolation, mode: IsolationMode, log: Logger): void {
  const active = layers.filter((layer) => layer.active).map(({ name }) => name);
  const inactive = Object.fromEntries(layers.filter((layer) => !layer.active).map(({ name, why }) => [name, why]));
  if (mode === 'off') log.warn('isolation is off: models run with all rights of this user');
  else log.info({ active, inactive }, 'isolation of the processes that run models');
}
