import { setTimeout as sleep } from 'node:timers/promises';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import { messageOf } from '../../../lib/errors.ts';
import { VERSION } from '../../../lib/version.ts';
import { RequestSpans } from './request-spans.ts';
import { samplerOf } from './sampler.ts';
import { TakenIds } from './taken-ids.ts';
import type { Tracing } from './tracing.ts';

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
