import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { RequestRecord } from '../../handlers/context.ts';
import type { ConnectionFigures } from './connections.ts';

/** Metrics of the server around the engine: what it answered, and its connections and process. */
export interface ServerMetrics {
  /** Counts the answer to a request, and of a request that its caller or the server ended. */
  answered(record: RequestRecord): void;
  /** Sets where the figures of the connections come from. */
  watch(figures: () => ConnectionFigures): void;
  /** Removes the gauges by which gateways choose a server, because this one is stopping. */
  stopping(): void;
  /** Returns the response to `GET /metrics`: in OpenMetrics if `accept` names it, else in Prometheus' own format. */
  handle(app: { bodyBytes: number; accept: string | undefined }): Promise<Response>;
  /** Bytes of the body budget as of the last scrape; a port for metrics alone has no app to ask. */
  bodyBytes: number;
}

/** Adds the metrics of the server to those of its engine. */
export function createServerMetrics(registry: Registry): ServerMetrics {
  const registers = [registry];
  const responses = new Counter({
    name: 'assay_http_responses_total',
    help: 'Answers by route and status, refused requests too; "none" is a path that does not exist.',
    labelNames: ['route', 'status'],
    registers,
  });
  const perKey = new Counter({
    name: 'assay_key_requests_total',
    help: 'Requests with a known API key, by its name and the model that answered.',
    labelNames: ['key', 'model'],
    registers,
  });
  const seconds = new Counter({
    name: 'assay_http_seconds_total',
    help: 'Time from arrival to the begin of the answer, by route: with the wait for the body, the checks and the queue.',
    labelNames: ['route'],
    registers,
  });
  let figures: () => ConnectionFigures = () => ({ open: 0, most: 0, evicted: 0, refused: 0 });
  const connections = (name: string, help: string, read: (now: ConnectionFigures) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(figures()));
      },
    });
  connections('assay_connections', 'Open connections.', ({ open }) => open);
  connections('assay_connections_limit', 'The most open connections.', ({ most }) => most);
  connections(
    'assay_connections_evicted',
    'Idle connections that gave way, since the start.',
    ({ evicted }) => evicted,
  );
  connections('assay_connections_refused', 'Connections that were refused, since the start.', ({ refused }) => refused);
  const bodies = new Gauge({
    name: 'assay_request_body_bytes',
    help: 'Bytes of the budget for large bodies that running requests hold.',
    registers,
  });
  // Among them the delay of the event loop, memory, processor time and open files.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 50 });
  return {
    answered({ event, route = 'none', status, ms, key, model = 'none' }) {
      if (event === 'stream_ended' || event === 'stream_failed') return;
      responses.inc({ route, status });
      seconds.inc({ route }, ms / 1000);
      if (key !== undefined) perKey.inc({ key, model });
    },
    watch(source) {
      figures = source;
    },
    stopping() {
      for (const { name } of registry.getMetricsAsArray())
        if (name.startsWith('vllm:')) registry.removeSingleMetric(name);
    },
    bodyBytes: 0,
    async handle({ bodyBytes, accept }) {
      this.bodyBytes = bodyBytes;
      bodies.set(bodyBytes);
      const text = await registry.metrics();
      if (!accept?.includes('application/openmetrics-text')) {
        return new Response(text, { headers: { 'content-type': Registry.PROMETHEUS_CONTENT_TYPE } });
      }
      return new Response(openMetrics(text), { headers: { 'content-type': Registry.OPENMETRICS_CONTENT_TYPE } });
    },
  };
}

/**
 * Converts Prometheus' text format to OpenMetrics, in which a counter's family has no `_total` and the text has an end.
 * prom-client's own conversion would append a second `_total` to the names. Source: OpenMetrics 1.0.
 */
function openMetrics(text: string): string {
  const counters = new Set([...text.matchAll(/^# TYPE (\S+)_total counter$/gm)].map(([, name]) => name));
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map((line) =>
      line.replace(/^(# (?:HELP|TYPE) )(\S+)_total /, (all, start: string, name: string) =>
        counters.has(name) ? `${start}${name} ` : all,
      ),
    );
  return `${lines.join('\n')}\n# EOF\n`;
}
