import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Metrics, Usage } from '../../lib/backend.ts';
import type { Calibration } from '../../lib/calibration/calibration.ts';
import type { MediaKind } from '../../lib/contract/conversation.ts';
import type { ErrorCode } from '../../lib/errors.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { MediaFigures } from '../protocol/messages.ts';
import type { MediaCounts } from './media/open-media.ts';
import type { EngineStatus } from './supervisor.ts';

export type RequestKind = 'tasks' | 'chat';

/** Collects metrics for Prometheus. Metric names end with their unit, as Prometheus's naming guide asks. */
export interface EngineMetrics {
  /** Counts a request that was answered, its tokens and its times. */
  answered(kind: RequestKind, model: ModelId, usage: Usage, metrics: Metrics): void;
  /** Counts the confidence of an answer to a question with a name. */
  decided(question: string, model: ModelId, confidence: number): void;
  /** Counts a request without an answer, by its outcome; without a model if it ended before that was known. */
  failed(kind: RequestKind, outcome: ErrorCode | 'caller_left', model?: ModelId): void;
  /** Counts a restart of a model's engine process after its death. */
  restarted(model: ModelId): void;
  /** Counters for images and for audio. */
  media: Record<MediaKind, MediaMetrics>;
  /** Holds all metrics of the engine; the server adds its own. */
  registry: Registry;
}

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300];
const SHARES = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];
/** Most questions whose confidence has a histogram of its own. */
const MOST_QUESTIONS = 64;
/** Longest name of such a question in characters. */
const QUESTION_LENGTH = 64;
const TOKENS_PER_SECOND = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/** Sets of metric names: Assay's own, or also the names by which routers know the queue and cache of vLLM. */
export const METRICS_NAMES = ['assay', 'vllm'] as const;
export type MetricsNames = (typeof METRICS_NAMES)[number];

/** Value of the label `model` for what belongs to no model. */
const NONE = { model: 'none' };

/**
 * Creates the metrics. Each scrape calls `statuses`, which returns the state of each model's engine, and `calibration`,
 * which returns the calibration of a model or null if it has none.
 */
export function createEngineMetrics(
  statuses: () => readonly EngineStatus[],
  calibration: (model: ModelId) => Promise<Calibration | null> = async () => null,
  names: MetricsNames = 'assay',
): EngineMetrics {
  const registry = new Registry();
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, labelNames: ['kind', 'model'], buckets, registers });
  /** Adds a gauge with a value for each model, or with one for each model and value of `label`. */
  const gauge = <Value extends number | Record<string, number>>(
    name: string,
    help: string,
    read: (status: EngineStatus) => Value,
    label?: string,
  ) =>
    new Gauge({
      name,
      help,
      labelNames: label === undefined ? ['model'] : [label, 'model'],
      registers,
      collect() {
        this.reset();
        const now = statuses();
        if (now.length === 0 && label === undefined) this.set(NONE, 0);
        for (const status of now) {
          const [value, model] = [read(status), status.model ?? NONE.model];
          if (typeof value === 'number') this.set({ model }, value);
          else for (const [part, one] of Object.entries(value)) this.set({ [label ?? '']: part, model }, one);
        }
      },
    });

  const requests = counter(
    'assay_requests_total',
    'Requests by kind and outcome: "ok", "caller_left", or an error code.',
    ['kind', 'outcome', 'model'],
  );
  const prompt = counter('assay_prompt_tokens_total', 'Prompt tokens of answered requests.', ['kind', 'model']);
  const cached = counter('assay_prompt_tokens_cached_total', 'Prompt tokens found in the prefix cache.', [
    'kind',
    'model',
  ]);
  const completion = counter('assay_completion_tokens_total', 'Tokens that the model chose.', ['kind', 'model']);
  const lookups = counter('assay_prefix_cache_lookups_total', 'Requests by whether a cached prefix served them.', [
    'result',
    'model',
  ]);
  const queue = histogram('assay_queue_seconds', 'Time in the queue.', SECONDS);
  const first = histogram('assay_time_to_first_token_seconds', 'Time from arrival to the first chosen token.', SECONDS);
  const total = histogram('assay_request_seconds', 'Time from arrival to the end of the answer.', SECONDS);
  const prefill = histogram('assay_prefill_tokens_per_second', 'Prompt tokens read per second.', TOKENS_PER_SECOND);
  const decode = histogram('assay_decode_tokens_per_second', 'Tokens chosen per second.', TOKENS_PER_SECOND);
  const decisions = new Histogram({
    name: 'assay_decision_confidence',
    help: 'Probability of the likeliest option, by question, with --metrics-questions; "other" beyond 64 questions.',
    labelNames: ['question', 'model'],
    buckets: SHARES,
    registers,
  });
  const known = new Set<string>();
  const restarts = counter('assay_engine_restarts_total', 'Starts of the engine process after it died.', ['model']);
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
  gauge('assay_requests_admitted', 'Admitted requests: checked, waiting or running.', ({ admitted }) => admitted);
  gauge('assay_tokens_admitted', 'Tokens of work of these requests.', ({ admittedTokens }) => admittedTokens);
  const cells = 'KV cells of running requests, and of cached prefixes.';
  gauge('assay_kv_cells', cells, ({ kvCells: { running, cached } }) => ({ running, cached }), 'state');
  const unsaved = 'Prefixes that the engine process could not write to --cache-dir, since it started.';
  gauge('assay_prefix_save_failures', unsaved, ({ saveFailures }) => saveFailures);
  gauge('assay_engine_resident_bytes', 'Memory of the engine process.', ({ rssBytes }) => rssBytes ?? 0);
  gauge(
    'assay_engine_memory_bytes',
    "Parts of the engine process' memory: the JavaScript heap, and buffers, which are mostly KV.",
    ({ memory }) => ({ heap: memory?.heapBytes ?? 0, buffers: memory?.bufferBytes ?? 0 }),
    'part',
  );

  if (names === 'vllm') addVllmGauges(registry, statuses);

  new Gauge({
    name: 'assay_calibration_error',
    help: 'Error of the probabilities of the loaded model, before and after calibration, as measured when it was fitted.',
    labelNames: ['kind', 'measure', 'stage', 'model'],
    registers,
    async collect() {
      this.reset();
      const models = statuses().flatMap(({ model }) => model ?? []);
      const each = await Promise.all(
        models.map(async (model) => ({ model, kinds: (await calibration(model))?.kinds })),
      );
      for (const { model, kinds = {} } of each) {
        for (const [kind, fit] of Object.entries(kinds)) {
          for (const stage of ['before', 'after'] as const) {
            for (const [measure, value] of Object.entries(fit[stage])) this.set({ kind, measure, stage, model }, value);
          }
        }
      }
    },
  });

  return {
    decided(question, model, confidence) {
      const name = question.slice(0, QUESTION_LENGTH);
      if (known.size < MOST_QUESTIONS) known.add(name);
      decisions.observe({ question: known.has(name) ? name : 'other', model }, confidence);
    },
    answered(kind, model, usage, metrics) {
      const labels = { kind, model };
      requests.inc({ kind, outcome: 'ok', model });
      prompt.inc(labels, usage.promptTokens);
      completion.inc(labels, usage.completionTokens);
      cached.inc(labels, metrics.cached_tokens ?? 0);
      lookups.inc({ result: (metrics.cached_tokens ?? 0) > 0 ? 'hit' : 'miss', model });
      const observe = (into: Histogram, value: number | null, unit = 1) =>
        value !== null && into.observe(labels, value / unit);
      observe(queue, metrics.queue_ms, 1000);
      observe(first, metrics.time_to_first_token_ms, 1000);
      observe(total, metrics.total_ms, 1000);
      observe(prefill, metrics.prompt_tokens_per_second);
      observe(decode, metrics.tokens_per_second);
    },
    failed: (kind, outcome, model) => requests.inc({ kind, outcome, ...NONE, ...(model ? { model } : {}) }),
    restarted: (model) => restarts.inc({ model }),
    media: { image: addMediaCounters('image', registers), audio: addMediaCounters('audio', registers) },
    registry,
  };
}

function kvUsage({ kvCells: { running, most } }: EngineStatus): number {
  return most === 0 ? 0 : Math.min(1, running / most);
}

/**
 * Adds the gauges by which pickers and routers choose a server, under the names of vLLM. Only models that answer have
 * values: a box that loads its model has no queue, so pickers would prefer it. Sources: vLLM, "Production Metrics";
 * Gateway API Inference Extension, "Model Server Protocol".
 */
function addVllmGauges(registry: Registry, statuses: () => readonly EngineStatus[]): void {
  const answering = () => statuses().filter(({ state }) => state === 'loaded');
  const gauge = (name: string, help: string, read: (status: EngineStatus) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['model_name'],
      registers: [registry],
      collect() {
        this.reset();
        for (const now of answering()) if (now.model !== null) this.set({ model_name: now.model }, read(now));
      },
    });
  gauge('vllm:num_requests_waiting', 'Requests in the queue.', ({ waiting }) => waiting);
  gauge('vllm:num_requests_running', 'Requests that the engine is answering.', ({ running }) => running);
  gauge('vllm:kv_cache_usage_perc', 'KV cells in use as a part of those that fit, 0 to 1.', kvUsage);
  new Gauge({
    name: 'vllm:cache_config_info',
    help: 'Size of the KV cache: a block is one cell.',
    labelNames: ['block_size', 'num_gpu_blocks', 'model_name'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { model, kvCells } of answering()) {
        const most = String(kvCells.most);
        if (model && kvCells.most > 0) this.set({ block_size: '1', num_gpu_blocks: most, model_name: model }, 1);
      }
    },
  });
}

/**
 * Counts images or recordings: how many were opened and decoded, the requests refused because of one, and (`encoded`)
 * how many features came from the encoder or its cache, and the time of the encoder.
 */
type MediaMetrics = MediaCounts & { encoded(figures: MediaFigures): void };

/** Metric names and words of the help texts, for each kind of media. */
const WORDS = {
  image: { all: 'assay_images', one: 'assay_image', many: 'Images', single: 'an image', decoded: 'whose pixels were' },
  audio: { all: 'assay_audio', one: 'assay_audio', many: 'Recordings', single: 'a recording', decoded: 'that were' },
} as const;

/** Creates the counters for one kind of media, and returns the functions that increment them. */
function addMediaCounters(kind: MediaKind, registers: Registry[]): MediaMetrics {
  const { all, one, many, single, decoded: prepared } = WORDS[kind];
  const counter = <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
    new Counter<L>({ name, help, labelNames, registers });
  const opened = counter(`${all}_total`, `${many} of requests that were opened.`);
  const decoded = counter(`${all}_decoded_total`, `${many} ${prepared} decoded for the encoder.`);
  const refused = counter(`${all}_refused_total`, `Requests refused because of ${single}, by reason.`, ['reason']);
  const features = counter(`${one}_features_total`, `${many} of answered requests by where their features came from.`, [
    'source',
  ]);
  const encoding = counter(`${one}_encoder_seconds_total`, `Time of the ${kind} encoder.`);
  return {
    opened: () => opened.inc(),
    decoded: () => decoded.inc(),
    refused: (reason) => refused.inc({ reason }),
    encoded({ encoded, cached, encodeMs }) {
      features.inc({ source: 'encoder' }, encoded);
      features.inc({ source: 'cache' }, cached);
      encoding.inc(encodeMs / 1000);
    },
  };
}
