import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace';
import type { RequestRecord } from '../../../handlers/context.ts';
import type { Answered } from '../../../runtime/supervisor/engine-backend.ts';

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
export class RequestSpans {
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
export class TakenIds implements IdGenerator {
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
