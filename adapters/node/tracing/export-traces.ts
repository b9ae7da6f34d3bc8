import { setTimeout as sleep } from 'node:timers/promises';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { RequestLog } from '../../../handlers/context.ts';
import { messageOf } from '../../../lib/errors.ts';
import { VERSION } from '../../../lib/version.ts';
import type { Answered } from '../../../runtime/supervisor/engine-backend.ts';
import { UsageError } from '../usage-error.ts';
import { RequestSpans, TakenIds } from './request-spans.ts';

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
