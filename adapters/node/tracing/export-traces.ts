import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Attributes,
  type Context,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { RequestLog, RequestRecord } from '../../../handlers/context.ts';
import { messageOf } from '../../../lib/errors.ts';
import { VERSION } from '../../../lib/version.ts';
import type { Answered } from '../../../runtime/supervisor/engine-backend.ts';
import { UsageError } from '../usage-error.ts';

/** Exports a span for each request, and child spans for its stages in the engine. */
export interface Tracing {
  /** Exports the request of a log record if it has ended and has a trace. */
  log: RequestLog;
  /** Records the stages of a request that the engine has just answered. Call it before `log` for that request. */
  answered(answered: Answered): void;
  /** Sends the remaining spans and ends the export, for at most two seconds. Never rejects. */
  close(): Promise<void>;
}

/** Milliseconds that sending the last spans may take when the server stops. */
const CLOSE_MS = 2_000;

/**
 * Returns a `Tracing` that exports spans by OTLP over HTTP. The exporter reads `OTEL_EXPORTER_OTLP_*` from the process
 * itself. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` set the attributes that describe this server. Logs export
 * errors as warnings with the message `tracing`. Throws `UsageError` for an invalid sampler (`samplerOf`).
 */
export function exportTraces(env: NodeJS.ProcessEnv, log: Logger): Tracing {
  const warn = (message: string) => log.warn({ message: reasonOf(message) }, 'tracing');
  diag.setLogger(
    { error: warn, warn, info: () => {}, debug: () => {}, verbose: () => {} },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const own = resourceFromAttributes({ 'service.name': 'assay', 'service.version': VERSION });
  const ids = new TakenIds();
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(own)
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(env),
    idGenerator: ids,
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  const spans = new RequestSpans(provider.getTracer('assay', VERSION), ids);
  return {
    log: (record) => spans.log(record),
    answered: (answered) => spans.answered(answered),
    close: () =>
      Promise.race([
        provider.shutdown().catch((error) => warn(messageOf(error))),
        sleep(CLOSE_MS, undefined, { ref: false }),
      ]),
  };
}

/** Returns the message of an error that OpenTelemetry reports as JSON, without the stack. */
function reasonOf(reported: string): string {
  try {
    const { message } = JSON.parse(reported);
    return typeof message === 'string' ? message : reported;
  } catch {
    return reported;
  }
}

const PARENT_BASED = 'parentbased_';

/**
 * Returns the sampler that `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG` specify (OpenTelemetry's environment
 * variables), by default `parentbased_always_on`. Throws `UsageError` for an unknown sampler, and for a ratio that is
 * not from 0 to 1.
 */
function samplerOf(env: NodeJS.ProcessEnv): Sampler {
  const name = env.OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  if (!name.startsWith(PARENT_BASED)) return rootSampler(name, env.OTEL_TRACES_SAMPLER_ARG);
  return new ParentBasedSampler({ root: rootSampler(name.slice(PARENT_BASED.length), env.OTEL_TRACES_SAMPLER_ARG) });
}

function rootSampler(name: string, argument: string | undefined): Sampler {
  switch (name) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratioOf(argument));
    default:
      throw new UsageError(
        'OTEL_TRACES_SAMPLER must be always_on, always_off or traceidratio, or one of these after parentbased_.',
      );
  }
}

function ratioOf(argument: string | undefined): number {
  const ratio = argument === undefined || argument === '' ? 1 : Number(argument);
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw new UsageError('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, such as 0.1.');
}

/** Describes a stage of a request in the engine; `start` and `end` are milliseconds since 1970. */
interface Stage {
  name: 'queue' | 'prefill' | 'decode';
  start: number;
  end: number;
  attributes: Attributes;
}

/** Largest number of requests whose stages are kept; more than can run at once. */
const MOST_RUNNING = 4096;

/**
 * Exports finished requests as spans: one for the request, which follows OpenTelemetry's conventions for HTTP servers,
 * and a child span for each stage in the engine. Spans never contain a prompt, an answer or a key.
 */
class RequestSpans {
  readonly #tracer: Tracer;
  readonly #ids: TakenIds;
  /** Stages of requests that `log` has not exported yet, by the id of the request's span. */
  readonly #stages = new Map<string, Stage[]>();

  constructor(tracer: Tracer, ids: TakenIds) {
    this.#tracer = tracer;
    this.#ids = ids;
  }

  /**
   * Keeps the stages of an answered request until `log` exports the request. Call it at the end of the answer, because
   * the times of the stages count back from now. Ignores a request without a trace.
   */
  answered({ trace: context, model, usage, metrics }: Answered): void {
    if (!context) return;
    const end = Date.now();
    const { queue_ms, prompt_ms, generation_ms, cached_tokens } = metrics;
    const decoding = end - (generation_ms ?? 0);
    const prefilling = decoding - (prompt_ms ?? 0);
    const named = { 'gen_ai.response.model': model };
    const prompt = {
      'gen_ai.usage.input_tokens': usage.promptTokens,
      ...(cached_tokens === null ? {} : { 'gen_ai.usage.cache_read.input_tokens': cached_tokens }),
    };
    const stages: Stage[] = [
      { name: 'queue', start: prefilling - (queue_ms ?? 0), end: prefilling, attributes: {} },
      { name: 'prefill', start: prefilling, end: decoding, attributes: { ...named, ...prompt } },
      {
        name: 'decode',
        start: decoding,
        end,
        attributes: { ...named, 'gen_ai.usage.output_tokens': usage.completionTokens },
      },
    ];
    this.#stages.set(context.spanId, stages);
    const [oldest] = this.#stages.keys();
    if (oldest !== undefined && this.#stages.size > MOST_RUNNING) this.#stages.delete(oldest);
  }

  /**
   * Exports the request of a log record, with its stages. Ignores a request without a trace, and the first record of a
   * streamed answer: such a request is exported when its stream ends.
   */
  log(record: RequestRecord): void {
    const { event, spanId, ms } = record;
    if (spanId === undefined || (event === 'request' && record.stream)) return;
    const end = Date.now();
    const span = this.#request(record, end - ms);
    if (!span) return;
    const below = trace.setSpan(ROOT_CONTEXT, span);
    for (const stage of this.#stages.get(spanId) ?? []) {
      const { name, start, attributes } = stage;
      this.#tracer.startSpan(name, { startTime: start, attributes }, below).end(stage.end);
    }
    this.#stages.delete(spanId);
    span.end(end);
  }

  #request(record: RequestRecord, startTime: number): Span | null {
    const { method, path, route, status, event, traceId, spanId } = record;
    if (traceId === undefined || spanId === undefined) return null;
    const failed = status >= 500 || event === 'stream_failed';
    const attributes: Attributes = {
      'http.request.method': method,
      'url.scheme': 'http',
      'url.path': path,
      'http.response.status_code': status,
      'assay.request_id': record.requestId,
      ...(route === undefined ? {} : { 'http.route': route }),
      ...(failed ? { 'error.type': event === 'stream_failed' ? event : String(status) } : {}),
    };
    const name = route === undefined ? method : `${method} ${route}`;
    const options = { kind: SpanKind.SERVER, startTime, attributes };
    const span = this.#ids.with({ traceId, spanId }, () => this.#tracer.startSpan(name, options, parentOf(record)));
    if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
    return span;
  }
}

function parentOf({ traceId, parentId, traceFlags }: RequestRecord): Context {
  if (traceId === undefined || parentId === undefined) return ROOT_CONTEXT;
  const flags = Number.parseInt(traceFlags ?? '0', 16);
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: parentId, traceFlags: flags, isRemote: true });
}

/**
 * Generates the ids of spans. The span of a request gets the ids that the request has had since it arrived, because the
 * log already has them. Other spans get random ids.
 */
class TakenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #taken: { traceId: string; spanId: string } | null = null;

  /** Runs `start`, which must start exactly one span, and gives that span `ids`. Returns the result of `start`. */
  with<T>(ids: { traceId: string; spanId: string }, start: () => T): T {
    this.#taken = ids;
    try {
      return start();
    } finally {
      this.#taken = null;
    }
  }

  generateTraceId(): string {
    return this.#taken?.traceId ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.#taken?.spanId ?? this.#random.generateSpanId();
  }
}
