import { readdir } from 'node:fs/promises';
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
  /**
   * Returns the response to `GET /metrics`, in the Prometheus text format.
   *
   * @param app `bodyBytes`: bytes of the budget for large bodies that running requests hold
   */
  handle(app: { bodyBytes: number }): Promise<Response>;
}

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300];
const TOKENS_PER_SECOND = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/**
 * Creates the metrics. Each scrape calls `status`, and `calibration`, which returns the calibration of the loaded model
 * or null if it has none.
 */
export function createEngineMetrics(
  status: () => EngineStatus,
  calibration: () => Promise<Calibration | null> = async () => null,
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
  gauge('assay_engine_ready', '1 while a model is loaded and answers.', ({ state }) => Number(state === 'loaded'));
  gauge('assay_requests_running', 'Requests that the engine is answering.', ({ running }) => running);
  gauge('assay_requests_waiting', 'Requests in the queue.', ({ waiting }) => waiting);
  gauge('assay_requests_admitted', 'Requests with a slot: checked, waiting or running.', ({ admitted }) => admitted);
  new Gauge({
    name: 'assay_kv_cells',
    help: 'KV cells of running requests, and of cached prefixes.',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, cells] of Object.entries(status().kvCells)) this.set({ state }, cells);
    },
  });
  const bodies = new Gauge({
    name: 'assay_request_body_bytes',
    help: 'Bytes of the budget for large bodies that running requests hold.',
    registers,
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

  addProcessGauges(registers);

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
    async handle({ bodyBytes }) {
      bodies.set(bodyBytes);
      return new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } });
    },
  };
}

/** Adds metrics of the server process itself, under the names that Prometheus client libraries use. */
function addProcessGauges(registers: Registry[]): void {
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Memory of the server process.',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  if (process.platform !== 'linux') return;
  new Gauge({
    name: 'process_open_fds',
    help: 'Open file descriptors of the server process.',
    registers,
    async collect() {
      const open = await readdir('/proc/self/fd').catch(() => null);
      if (open) this.set(open.length);
    },
  });
}
