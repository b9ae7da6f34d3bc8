import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Metrics, Usage } from '../../lib/backend.ts';
import type { Calibration } from '../../lib/calibration/calibration.ts';
import type { MediaKind } from '../../lib/contract/conversation.ts';
import type { ErrorCode } from '../../lib/errors.ts';
import type { EngineStatus } from './engine-process.ts';
import { addMediaCounters, type MediaMetrics } from './media/media-metrics.ts';

export type RequestKind = 'tasks' | 'chat';

/** Collects metrics for Prometheus. Metric names end with their unit, as Prometheus's naming guide asks. */
export interface EngineMetrics {
  /** Counts a request that was answered, its tokens and its times. */
  answered(kind: RequestKind, usage: Usage, metrics: Metrics): void;
  /** Counts a request that failed, by its error code. */
  failed(kind: RequestKind, code: ErrorCode): void;
  /** Counts a restart of the engine process after its death. */
  restarted(): void;
  /** Counters for images and for audio. */
  media: Record<MediaKind, MediaMetrics>;
  /** Holds all metrics of the engine; the server adds its own. */
  registry: Registry;
}

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300];
const TOKENS_PER_SECOND = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/** Sets of metric names: Assay's own, or also the names by which routers know the queue and cache of vLLM. */
export const METRICS_NAMES = ['assay', 'vllm'] as const;
export type MetricsNames = (typeof METRICS_NAMES)[number];

/**
 * Creates the metrics. Each scrape calls `status`, and `calibration`, which returns the calibration of the loaded model
 * or null if it has none.
 */
export function createEngineMetrics(
  status: () => EngineStatus,
  calibration: () => Promise<Calibration | null> = async () => null,
  names: MetricsNames = 'assay',
): EngineMetrics {
  const registry = new Registry();
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, labelNames: ['kind'], buckets, registers });
  const gauge = (name: string, help: string, read: (status: EngineStatus) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(status()));
      },
    });

  const requests = counter('assay_requests_total', 'Requests by kind and outcome: "ok" or an error code.', [
    'kind',
    'outcome',
  ]);
  const prompt = counter('assay_prompt_tokens_total', 'Prompt tokens of answered requests.', ['kind']);
  const cached = counter('assay_prompt_tokens_cached_total', 'Prompt tokens found in the prefix cache.', ['kind']);
  const completion = counter('assay_completion_tokens_total', 'Tokens that the model chose.', ['kind']);
  const lookups = counter('assay_prefix_cache_lookups_total', 'Requests by whether a cached prefix served them.', [
    'result',
  ]);
  const queue = histogram('assay_queue_seconds', 'Time in the queue.', SECONDS);
  const first = histogram('assay_time_to_first_token_seconds', 'Time from arrival to the first chosen token.', SECONDS);
  const total = histogram('assay_request_seconds', 'Time from arrival to the end of the answer.', SECONDS);
  const prefill = histogram('assay_prefill_tokens_per_second', 'Prompt tokens read per second.', TOKENS_PER_SECOND);
  const decode = histogram('assay_decode_tokens_per_second', 'Tokens chosen per second.', TOKENS_PER_SECOND);
  const restarts = counter('assay_engine_restarts_total', 'Starts of the engine process after it died.');
  const isReady = ({ state, unresponsive }: EngineStatus) => Number(state === 'loaded' && !unresponsive);
  gauge('assay_engine_ready', '1 while a model is loaded and answers.', isReady);
  gauge(
    'assay_engine_heartbeat_age_seconds',
    'Time since the engine process last reported; 0 without such a process.',
    ({ silentMs }) => (silentMs ?? 0) / 1000,
  );
  gauge('assay_kv_usage_ratio', 'KV cells of running requests as a part of those that fit.', kvUsage);
  gauge('assay_requests_running', 'Requests that the engine is answering.', ({ running }) => running);
  gauge('assay_requests_waiting', 'Requests in the queue.', ({ waiting }) => waiting);
  gauge('assay_requests_admitted', 'Requests with a slot: checked, waiting or running.', ({ admitted }) => admitted);
  gauge('assay_tokens_admitted', 'Tokens of work of these requests.', ({ admittedTokens }) => admittedTokens);
  new Gauge({
    name: 'assay_kv_cells',
    help: 'KV cells of running requests, and of cached prefixes.',
    labelNames: ['state'],
    registers,
    collect() {
      const { running, cached } = status().kvCells;
      this.set({ state: 'running' }, running);
      this.set({ state: 'cached' }, cached);
    },
  });
  gauge('assay_engine_resident_bytes', 'Memory of the engine process.', ({ rssBytes }) => rssBytes ?? 0);
  new Gauge({
    name: 'assay_engine_memory_bytes',
    help: "Parts of the engine process' memory: the JavaScript heap, and buffers, which are mostly KV.",
    labelNames: ['part'],
    registers,
    collect() {
      const { heapBytes = 0, bufferBytes = 0 } = status().memory ?? {};
      this.set({ part: 'heap' }, heapBytes);
      this.set({ part: 'buffers' }, bufferBytes);
    },
  });

  if (names === 'vllm') addVllmGauges(registry, status);

  new Gauge({
    name: 'assay_calibration_error',
    help: 'Error of the probabilities of the loaded model, before and after calibration, as measured when it was fitted.',
    labelNames: ['kind', 'measure', 'stage'],
    registers,
    async collect() {
      this.reset();
      for (const [kind, fit] of Object.entries((await calibration())?.kinds ?? {})) {
        for (const stage of ['before', 'after'] as const) {
          for (const [measure, value] of Object.entries(fit[stage])) this.set({ kind, measure, stage }, value);
        }
      }
    },
  });

  const seconds = (into: Histogram, kind: RequestKind, ms: number | null) =>
    ms !== null && into.observe({ kind }, ms / 1000);
  const rate = (into: Histogram, kind: RequestKind, value: number | null) =>
    value !== null && into.observe({ kind }, value);
  return {
    answered(kind, usage, metrics) {
      requests.inc({ kind, outcome: 'ok' });
      prompt.inc({ kind }, usage.promptTokens);
      completion.inc({ kind }, usage.completionTokens);
      cached.inc({ kind }, metrics.cached_tokens ?? 0);
      lookups.inc({ result: (metrics.cached_tokens ?? 0) > 0 ? 'hit' : 'miss' });
      seconds(queue, kind, metrics.queue_ms);
      seconds(first, kind, metrics.time_to_first_token_ms);
      seconds(total, kind, metrics.total_ms);
      rate(prefill, kind, metrics.prompt_tokens_per_second);
      rate(decode, kind, metrics.tokens_per_second);
    },
    failed: (kind, outcome) => requests.inc({ kind, outcome }),
    restarted: () => restarts.inc(),
    media: { image: addMediaCounters('image', registers), audio: addMediaCounters('audio', registers) },
    registry,
  };
}

function kvUsage({ kvCells: { running, most } }: EngineStatus): number {
  return most === 0 ? 0 : Math.min(1, running / most);
}

/**
 * Adds the gauges by which pickers and routers choose a server, under the names of vLLM. Sources: vLLM, "Production
 * Metrics"; Gateway API Inference Extension, "Model Server Protocol".
 */
function addVllmGauges(registry: Registry, status: () => EngineStatus): void {
  const gauge = (name: string, help: string, read: (status: EngineStatus) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['model_name'],
      registers: [registry],
      collect() {
        this.reset();
        const now = status();
        if (now.model !== null) this.set({ model_name: now.model }, read(now));
      },
    });
  gauge('vllm:num_requests_waiting', 'Requests in the queue.', ({ waiting }) => waiting);
  gauge('vllm:num_requests_running', 'Requests that the engine is answering.', ({ running }) => running);
  gauge('vllm:kv_cache_usage_perc', 'KV cells in use as a part of those that fit, 0 to 1.', kvUsage);
  new Gauge({
    name: 'vllm:cache_config_info',
    help: 'Size of the KV cache: a block is one cell.',
    labelNames: ['block_size', 'num_gpu_blocks'],
    registers: [registry],
    collect() {
      this.reset();
      const { most } = status().kvCells;
      if (most > 0) this.set({ block_size: '1', num_gpu_blocks: String(most) }, 1);
    },
  });
}
